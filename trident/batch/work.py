"""What a clock hands to the batch runner: the part of a batch that an engine knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trident.batch.computed import NOTHING_COMPUTED, Computed, Computing, Postponed
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

        It is, for each transactional stream, what its replay needs to emit exactly the same; it is
        logged first, at the cost of one durable write. None needs no such entry. `metadata` is what
        the last commit stored, by stream id.
        """
        return None

    def emit(self, token: Token, metadata: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
        """Take the batch from its sources.

        `metadata` is what the last commit stored, and `planned` what the log says that this txid
        holds, by stream id. It is False where there is no tuple, and no step that acts on none: the
        txid is then committed without touching any state.

        A FailedException fails this attempt, and the batch is retried; `NothingNew` gives it back:
        nothing is written, and the same one follows later.
        """
        return True

    def compute(self, token: Token) -> Computed | Computing | Postponed:
        """Run all steps of the batch that can run before it begins, or have them run.

        What is left to do is handed to :meth:`write`. A FailedException fails this attempt.
        """
        return NOTHING_COMPUTED

    @abstractmethod
    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do what is left, and write every state of the group.

        Every state has begun the record: hand it to ``State.beginCommit``. A FailedException fails
        this attempt; a StaleBatchError says that another run has taken over, and ends the run.
        """

    def drop(self) -> None:
        """Let go of what was emitted: the batch is given up."""

    def committing(self, token: Token) -> None:
        """Do what belongs to the commit of `token`, directly before it; may fail the attempt."""

    def committed(self, token: Token) -> None:
        """Acknowledge sources: `token` is committed; may be called again, by another process
        too."""


class GroupEngine(Protocol):
    """An engine that runs the batches of one group of spouts."""

    @property
    def acts_on_nothing(self) -> bool:
        """Whether a batch without tuples is run too; else it is committed and no more."""

    def read(self, emission: Emission) -> tuple[Tuples, list[Emitted]]:
        """Emit partitions of a spout, where this engine works on their tuples.

        The tuples are as :meth:`compute` takes them, with what became of each partition.
        """

    def compute(
        self, record: ControlRecord, emitted: Mapping[str, Tuples]
    ) -> Computed | Computing | Postponed:
        """Run all steps of a batch that can run before its states are begun, or have them run.

        Those are all but the updates of states that the driver hosts. Where tasks update a state,
        or a step reads what the batch updates, no step is run.

        No state has begun `record`, which is for errors. What was emitted on the driver is a
        :class:`Block`, and else what :meth:`read` gave.
        """

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do what is left, and write the states; in any thread, one call at a time.

        Every state has begun `record`: a token of the batch, not always that which it was computed
        with. `computed` is what :meth:`compute` gave, or the same made anew.
        """

    def drop(self, emitted: Mapping[str, Tuples]) -> None:
        """Let go of tuples that are not computed."""

    def close(self) -> None:
        """Release what the engine holds; called once, after the last batch."""
