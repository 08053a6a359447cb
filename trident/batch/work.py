"""What a clock hands to the batch runner: the part of a batch that an engine knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trident.batch.computed import Computed
from trident.batch.outcome import Outcome
from trident.sources.emission import Emission, Emitted
from trident.sources.source import Tuples
from trident.states.control import ControlRecord
from trident.states.values import Token


class NothingNew(Exception):
    """A batch has neither tuples nor other metadata: it is not committed, and still due."""


class BatchWork(ABC):
    """The work of one txid, called by the runner on the driver, one call at a time.

    ``plan``, ``emit``, ``run`` and ``committing`` are called once an attempt, in this order,
    ``plan`` only until it has decided; ``committed`` after the commit, once more after a restart or
    for a replay.
    """

    emitted_metadata: Mapping[str, Any] = {}
    """What the last ``emit`` or ``run`` says of its sources, by stream id; stored by the commit
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
            is then committed without touching any state, and ``run`` isn't called.

        Raises
        ------
        FailedException
            Fails this attempt; the batch is retried.
        NothingNew
            The attempt is given back: nothing is written, and the same one follows later.
        """
        return True

    @abstractmethod
    def run(self, record: ControlRecord) -> Outcome:
        """Process the batch and write every state of the group.

        Parameters
        ----------
        record : ControlRecord
            What every state of the group has begun: hand it to ``State.beginCommit``.

        Raises
        ------
        FailedException
            Fails this attempt; the batch is retried.
        StaleBatchError
            Another run has taken over; the run stops.
        """

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

    def run(self, record: ControlRecord, emitted: Mapping[str, Tuples]) -> Outcome:
        """Process one attempt, as :meth:`BatchWork.run`.

        Parameters
        ----------
        record : ControlRecord
            What every state of the group has begun.
        emitted : mapping of str to Tuples
            The tuples of every stream of the group, by stream id: a :class:`Block` of what was
            emitted on the driver, else what :meth:`read` gave.
        """

    def close(self) -> None:
        """Release what the engine holds; called once, after the last batch."""


class OverlappingEngine(GroupEngine, Protocol):
    """An engine that can compute a batch while an earlier one is written."""

    def compute(self, record: ControlRecord, emitted: Mapping[str, Tuples]) -> Computed:
        """Run all steps of an attempt but the updates of states, which are not begun yet.

        In the run's own thread; only for a group whose batches may overlap, see `Engine.pending`.

        Parameters
        ----------
        record : ControlRecord
            The attempt, for errors.
        emitted : mapping of str to Tuples
            As for :meth:`run`.
        """
        ...

    def write(self, record: ControlRecord, computed: Computed) -> Outcome:
        """Update the states, and write them; in any thread, one call at a time.

        Parameters
        ----------
        record : ControlRecord
            What every state of the group has begun: a token of the batch, not always that which it
            was computed with.
        computed : Computed
            What :meth:`compute` gave, or the same made anew.
        """
        ...
