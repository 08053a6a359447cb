"""Batches that are emitted and computed before the one before them has committed."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from trident.batch.computed import Computed
from trident.batch.outcome import Outcome
from trident.batch.progress import BatchProgress
from trident.batch.runner import BatchRunner
from trident.batch.work import BatchWork, OverlappingEngine
from trident.states.control import ControlRecord
from trident.states.values import Token

PENDING_BYTES = 256 * 1024 * 1024
"""How many bytes the batches that are computed and not committed may take in memory, roughly."""


class PendingBatch(BatchWork):
    """A batch that another thread commits.

    Parameters
    ----------
    token : Token
        Its first attempt.
    """

    def __init__(self, token: Token) -> None:
        self.token = token
        self._done = threading.Event()
        self._progress: BatchProgress | None = None
        self._failure: BaseException | None = None

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Roughly how many bytes are kept until it is written."""

    @abstractmethod
    def commit(self, runner: BatchRunner) -> BatchProgress | None:
        """Commit it, in the committer's thread; return None to discard it."""

    @property
    def is_done(self) -> bool:
        """Whether it is committed, has failed, or was discarded."""
        return self._done.is_set()

    def end(
        self, progress: BatchProgress | None = None, failure: BaseException | None = None
    ) -> None:
        """Say what became of it: neither is given where it was discarded."""
        self._progress, self._failure = progress, failure
        self._done.set()

    def wait(self) -> BatchProgress | None:
        """Wait for its end; return None where it was discarded, raise what it failed with."""
        self._done.wait()
        if self._failure is not None:
            raise self._failure
        return self._progress


class ComputedBatch(PendingBatch):
    """The first attempt of a batch of spouts, of which only the writing is left.

    Once the run is to stop it is discarded: its sources emit it anew.

    Parameters
    ----------
    token : Token
        The attempt.
    planned : mapping of str to object or None
        What :meth:`BatchWork.plan` decided, where the log doesn't hold it yet.
    work : BatchWork
        What has emitted the batch.
    following : mapping of str to object
        The metadata that its commit stores.
    engine : OverlappingEngine
        What has computed it.
    computed : Computed or None
        What was computed; None where there is nothing to run.
    """

    def __init__(
        self,
        token: Token,
        planned: Mapping[str, Any] | None,
        work: BatchWork,
        following: Mapping[str, Any],
        engine: OverlappingEngine,
        computed: Computed | None,
    ) -> None:
        super().__init__(token)
        self.emitted_metadata = work.emitted_metadata
        self.emitted_plan = work.emitted_plan
        self.active = work.active
        self.following = following
        self._planned = planned
        self._engine = engine
        self._computed = computed

    def plan(self, txid: int, metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self._planned

    def emit(self, token: Token, metadata: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
        return self._computed is not None

    def run(self, record: ControlRecord) -> Outcome:
        assert self._computed is not None
        return self._engine.write(record, self._computed)

    @property
    def nbytes(self) -> int:
        return self._computed.nbytes if self._computed else 0

    def commit(self, runner: BatchRunner) -> BatchProgress | None:
        return None if runner.stopping.is_set() else runner.run_once(self)


def is_full(batches: Sequence[PendingBatch], most: int) -> bool:
    """Whether there is no room for another batch, which is taken to be as large as the last.

    Parameters
    ----------
    batches : sequence of PendingBatch
        Those that are computed and not committed, at least one.
    most : int
        How many there may be.
    """
    if len(batches) >= most:
        return True
    return sum(each.nbytes for each in batches) + batches[-1].nbytes > PENDING_BYTES


class FailedAttempt(BatchWork):
    """A batch whose first attempt has failed already; its next ones are those of `work`.

    Parameters
    ----------
    work : BatchWork
        The batch.
    failure : BaseException
        What its first attempt failed with.
    """

    def __init__(self, work: BatchWork, failure: BaseException) -> None:
        self._work = work
        self._failure: BaseException | None = failure

    def plan(self, txid: int, metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self._fail()
        return self._work.plan(txid, metadata)

    def emit(self, token: Token, metadata: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
        self._fail()
        to_run = self._work.emit(token, metadata, planned)
        self.emitted_metadata = self._work.emitted_metadata
        self.emitted_plan = self._work.emitted_plan
        self.active = self._work.active
        return to_run

    def run(self, record: ControlRecord) -> Outcome:
        return self._work.run(record)

    def committing(self, token: Token) -> None:
        self._work.committing(token)

    def committed(self, token: Token) -> None:
        self._work.committed(token)

    def _fail(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


class Committer:
    """Commits batches, in their order, in a thread of its own.

    After one that fails those behind it are discarded.

    Parameters
    ----------
    runner : BatchRunner
        The group's; used by that thread only while a batch is under way.
    """

    def __init__(self, runner: BatchRunner) -> None:
        self._runner = runner
        self._batches: SimpleQueue[PendingBatch | None] = SimpleQueue()
        self._failed = False
        self._thread = threading.Thread(
            target=self._run, name=f"trident-{runner.group}-commit", daemon=True
        )
        self._thread.start()

    def take(self, batch: PendingBatch) -> None:
        """Commit `batch` after those that were taken before it."""
        self._batches.put(batch)

    def go_on(self) -> None:
        """Commit again, after a failure, when all batches behind it were discarded."""
        self._failed = False

    def close(self) -> None:
        """End the thread, after the batches that it was given."""
        self._batches.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            if self._failed:
                batch.end()
                continue
            try:
                batch.end(batch.commit(self._runner))
            except BaseException as failure:
                self._failed = True
                batch.end(failure=failure)
