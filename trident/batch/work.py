"""What a clock hands to the batch runner: the part of a batch that an engine knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trident.batch.computed import NOTHING_COMPUTED, Computed, Postponed
from trident.batch.outcome import Outcome
from trident.sources.emission import Emission, Emitted
from trident.sources.source import Tuples
from trident.states.control import ControlRecord
from trident.states.values import Token


class NothingNew(Exception):
    """A batch has neither tuples nor other metadata: it is not committed, and still due."""


class BatchWork(ABC):
    """The work of one txid, called by the runner on the driver, one call at a time.

    ``plan``, ``emit`` and ``compute`` are called first, in this order, ``plan`` only until the log
    has what it decided. No store has heard of the attempt before they have returned. Then come
    ``write`` and ``committing``; and ``committed`` after the commit, once more after a restart or
    for a replay. A batch that is given up is dropped in place of computed and written.
    """

    emitted_metadata: Mapping[str, Any] = {}
    """What the last ``emit`` says of its sources, by stream id; stored by the commit
    and given to the next txid. JSON values only, which nobody changes afterwards; see
    :func:`~trident.log.entry.check_metadata`."""
    emitted_plan: Mapping[str, Any] = {}
    """For transactional streams whose emission decides what the batch holds, and had not decided
    yet, what their replay needs to emit the same; logged before any state is written. JSON values
    as well."""
    active: Mapping[str, Sequence[str]] = {}
    """What a watermark waits for, after the last ``emit``: the partitions of each stream."""

    def plan(self, txid: int, metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Decide what `txid` will hold, before any state is written.

        Parameters
        ----------
        txid : int
            The batch.
        metadata : mapping of str to object
            What the last commit stored, by stream id.

        Returns
        -------
        mapping of str to object, or None
            For each transactional stream what its replay needs to emit exactly the same; it is
            logged first, at the cost of one durable write. None needs no such entry.
        """
        return None

    def emit(self, token: Token, metadata: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
        """Take the batch from its sources.

        Parameters
        ----------
        token : Token
            The attempt.
        metadata : mapping of str to object
            By stream id, what the last commit stored.
        planned : mapping of str to object
            By stream id, what the log says that this txid holds.

        Returns
        -------
        bool
            False where there is nothing to do: no tuple, and no step that acts on none. The txid
            is then committed without touching any state.

        Raises
        ------
        FailedException
            Fails this attempt; the batch is retried.
        NothingNew
            The attempt is given back: nothing is written, and the same one follows later.
        """
        return True

    def compute(self, token: Token) -> Computed | Postponed:
        """Run all steps of the batch that can run before it begins.

        Parameters
        ----------
        token : Token
            The attempt.

        Returns
        -------
        Computed or Postponed
            What is left to do; handed to :meth:`write`.

        Raises
        ------
        FailedException
            Fails this attempt; the batch is retried.
        """
        return NOTHING_COMPUTED

    @abstractmethod
    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do what is left, and write every state of the group.

        Parameters
        ----------
        record : ControlRecord
            What every state of the group has begun: hand it to ``State.beginCommit``.
        computed : Computed or Postponed
            What :meth:`compute` gave.

        Raises
        ------
        FailedException
            Fails this attempt; the batch is retried.
        StaleBatchError
            Another run has taken over; the run stops.
        """

    def drop(self) -> None:  # noqa: B027 - most work keeps nothing
        """Let go of what was emitted: the batch is given up."""

    def committing(self, token: Token) -> None:  # noqa: B027 - most work has no part in it
        """Do what belongs to the commit of `token`, directly before it.

        Raises
        ------
        FailedException
            Fails this attempt; the batch is retried.
        """

    def committed(self, token: Token) -> None:
        """Learn that `token` is committed and announced: acknowledge sources.

        May be called again for the same token, also by another process.
        """
        return None


class GroupEngine(Protocol):
    """An engine that runs the batches of one group of spouts."""

    @property
    def acts_on_nothing(self) -> bool:
        """Whether a batch without tuples is run too; else it is committed and no more."""

    def read(self, emission: Emission) -> tuple[Tuples, list[Emitted]]:
        """Emit partitions of a spout, where this engine works on their tuples.

        Returns
        -------
        Tuples
            The tuples, as :meth:`run` takes them.
        list of Emitted
            What became of each partition.
        """

    def compute(
        self, record: ControlRecord, emitted: Mapping[str, Tuples]
    ) -> Computed | Postponed:
        """Run all steps of a batch that can run before its states are begun.

        Those are all but the updates of states that the driver hosts. Where tasks update a state,
        or a step reads what the batch updates, no step is run.

        Parameters
        ----------
        record : ControlRecord
            The attempt, for errors; no state has begun it.
        emitted : mapping of str to Tuples
            The tuples of every stream of the group, by stream id: a :class:`Block` of what was
            emitted on the driver, else what :meth:`read` gave.
        """

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do what is left, and write the states; in any thread, one call at a time.

        Parameters
        ----------
        record : ControlRecord
            What every state of the group has begun: a token of the batch, not always that which it
            was computed with.
        computed : Computed or Postponed
            What :meth:`compute` gave, or the same made anew.
        """

    def drop(self, emitted: Mapping[str, Tuples]) -> None:
        """Let go of tuples that are not computed."""

    def close(self) -> None:
        """Release what the engine holds; called once, after the last batch."""
