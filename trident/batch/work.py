"""What a clock hands to the batch runner: the part of a batch that depends on the engine."""

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

    ``plan``, ``emit`` and ``compute`` are called first, in this order; ``plan`` only until the log
    has the plan. They touch no store. ``write`` and ``committing`` follow. ``committed`` is called
    after the commit, and again after a restart or for a replay. A batch that is given up is dropped
    instead of computed and written.
    """

    emitted_metadata: Mapping[str, Any] = {}
    """What the last ``emit`` says of its sources, by stream id; the commit stores it, and the next
    txid gets it. JSON values only, which must not change afterwards; see
    :func:`~trident.log.entry.check_metadata`."""
    emitted_plan: Mapping[str, Any] = {}
    """What a replay needs to emit the same, for transactional streams whose last ``emit`` decided
    what the batch holds; logged before any state is written. JSON values as well."""
    active: Mapping[str, Sequence[str]] = {}
    """What a watermark waits for, after the last ``emit``: the partitions of each stream."""

    def plan(self, txid: int, metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Decide what `txid` will hold, before any state is written.

        Returns for each transactional stream what a replay needs to emit exactly the same. It is
        logged first, which costs one durable write; None needs no such entry. `metadata` is what
        the last commit stored, by stream id.
        """
        return None

    def emit(self, token: Token, metadata: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
        """Take the batch from its sources.

        `metadata` is what the last commit stored, and `planned` what the log says that this txid
        holds, by stream id. Returns False if there is no tuple, and no step that acts without
        tuples: the txid is then committed without touching any state.

        A FailedException fails this attempt, and the batch is retried. `NothingNew` gives it back:
        nothing is written, and the same txid follows later.
        """
        return True

    def compute(self, token: Token) -> Computed | Computing | Postponed:
        """Run all steps of the batch that can run before it begins, or have them run.

        The remaining work is handed to :meth:`write`. A FailedException fails this attempt.
        """
        return NOTHING_COMPUTED

    @abstractmethod
    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do the remaining work, and write every state of the group.

        Every state has begun the record: hand it to ``State.beginCommit``. A FailedException fails
        this attempt. A StaleBatchError says that another run has taken over, and ends the run.
        """

    def drop(self) -> None:
        """Let go of what was emitted: the batch is given up."""

    def committing(self, token: Token) -> None:
        """Do what belongs to the commit of `token`, directly before it; may fail the attempt."""

    def committed(self, token: Token) -> None:
        """Acknowledge sources: `token` is committed. May be called again, also by another
        process."""


class GroupEngine(Protocol):
    """An engine that runs the batches of one group of spouts."""

    @property
    def acts_on_nothing(self) -> bool:
        """Whether a batch without tuples is run too; otherwise it is only committed."""

    def read(self, emission: Emission) -> tuple[Tuples, list[Emitted]]:
        """Emit partitions of a spout, in the place where this engine works on their tuples.

        Returns the tuples as :meth:`compute` takes them, and the result of each partition.
        """

    def compute(
        self, record: ControlRecord, emitted: Mapping[str, Tuples]
    ) -> Computed | Computing | Postponed:
        """Run all steps of a batch that can run before its states are begun, or have them run.

        These are all but the updates of states that the driver hosts. If tasks update a state, or a
        step reads what the batch updates, no step is run.

        No state has begun `record`, which is for errors. What was emitted on the driver is a
        :class:`Block`, other tuples are what :meth:`read` gave.
        """

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do the remaining work, and write the states; in any thread, one call at a time.

        Every state has begun `record`. Its token is one of the batch, perhaps another one than the
        batch was computed with. `computed` is what :meth:`compute` gave, or an equal one.
        """

    def drop(self, emitted: Mapping[str, Tuples]) -> None:
        """Let go of tuples that are not computed."""

    def close(self) -> None:
        """Release what the engine holds; called once, after the last batch."""
