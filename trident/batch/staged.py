"""The batches of Spark's clock that are computed and staged, and committed behind it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

from trident.batch.ahead import Committer, FailedAttempt, PendingBatch, is_full
from trident.batch.computed import Computed
from trident.batch.outcome import Outcome
from trident.batch.progress import BatchProgress
from trident.batch.runner import BatchRunner
from trident.batch.watchpoints import reached
from trident.batch.work import BatchWork
from trident.log.errors import StagingError
from trident.log.staging import StagedFile, StagingArea
from trident.states.control import ControlRecord
from trident.states.values import Token

_logger = logging.getLogger("trident")

Compute = Callable[[ControlRecord], Computed]
"""Runs all steps of a batch but its updates; of the record only the token counts."""
Told = Callable[[BatchProgress | None, BaseException | None], None]
"""Takes the progress of a batch, or what it failed with; in the thread that has committed it."""


class StagingEngine(Protocol):
    """An engine that can make what it has computed durable."""

    def write(self, record: ControlRecord, computed: Computed) -> Outcome:
        """Update the states, and write them; see `OverlappingEngine.write`."""
        ...

    def packed(self, computed: Computed) -> Mapping[str, bytes | memoryview]:
        """Return what is needed to make the updates, by the name of the state."""
        ...

    def unpacked(self, parts: Mapping[str, bytes | memoryview]) -> Computed:
        """Return what :meth:`packed` was given.

        Raises
        ------
        StagingError
            When it is that of another topology.
        """
        ...


class StagedBatch(PendingBatch):
    """A batch that is computed once, staged before any state is written, and then committed.

    Parameters
    ----------
    staged : StagedFile
        Which batch; with its parts where it was found staged.
    area : StagingArea
        Where it is staged.
    engine : StagingEngine
        Writes what was computed.
    runner : BatchRunner
        Commits it.
    told : callable
        Takes its end.
    computed : Computed or Compute
        What was found staged; or what computes it.
    """

    def __init__(
        self,
        staged: StagedFile,
        area: StagingArea,
        engine: StagingEngine,
        runner: BatchRunner,
        told: Told,
        computed: Computed | Compute,
    ) -> None:
        super().__init__(Token(staged.txid, 0))
        self.query_id = staged.query_id
        self._staged = replace(staged, parts={})
        self._area = area
        self._engine = engine
        self._runner = runner
        self._told = told
        self._computed = computed

    def stage(self, record: ControlRecord) -> Computed:
        """Compute the batch and make it durable, unless that is done; return what was computed.

        Raises
        ------
        Exception
            As the computing does, or where the disk is away for too long.
        """
        if isinstance(self._computed, Computed):
            return self._computed
        computed = self._computed(record)
        reached("before stage", record.token)
        parts = self._engine.packed(computed)
        staged = replace(self._staged, parts=parts)
        self._runner.patiently(staged.txid, partial(self._area.stage, staged), "the staging of ")
        self._computed = computed
        reached("after stage", record.token)
        return computed

    def run(self, record: ControlRecord) -> Outcome:
        return self._engine.write(record, self.stage(record))

    @property
    def nbytes(self) -> int:
        return self._computed.nbytes if isinstance(self._computed, Computed) else 0

    def commit(self, runner: BatchRunner, failed: Exception | None = None) -> BatchProgress:
        """Commit it with as many attempts as that takes, also where the run is to stop.

        Parameters
        ----------
        runner : BatchRunner
            The group's.
        failed : Exception or None
            What its first attempt has failed with already, as it was computed.
        """
        work: BatchWork = self if failed is None else FailedAttempt(self, failed)
        staged = self._staged
        progress = runner.run(work, staged.txid, digest=staged.digest, query_id=staged.query_id)
        reached("before unstage", self.token)
        self._area.remove(staged)
        reached("after unstage", self.token)
        self._computed = Computed((), Outcome())  # let go of the tuples
        return progress

    def end(
        self, progress: BatchProgress | None = None, failure: BaseException | None = None
    ) -> None:
        if progress is not None or failure is not None:
            self._told(progress, failure)
        super().end(progress, failure)


class StagedBatches:
    """Stages batches, and has them committed behind their clock.

    A batch that fails takes nothing with it: what is staged behind it stays so, for its next
    attempt or for the next start.

    Parameters
    ----------
    area : StagingArea
        Where batches are staged.
    engine : StagingEngine
        Writes what was computed.
    runner : BatchRunner
        The group's, opened.
    most : int
        How many batches may be computed and not committed.
    told : callable
        Takes the end of each batch.
    """

    def __init__(
        self,
        area: StagingArea,
        engine: StagingEngine,
        runner: BatchRunner,
        most: int,
        told: Told,
    ) -> None:
        self._area = area
        self._engine = engine
        self._runner = runner
        self._most = most
        self._told = told
        self._batches: tuple[StagedBatch, ...] = ()
        self._committer: Committer | None = None

    def open(self, passed: int) -> None:
        """Have committed what an earlier run has staged; called once, before any batch.

        Parameters
        ----------
        passed : int
            The last batch that the clock won't make again.

        Raises
        ------
        StagingError
            When that is not all of it, or not this log's or topology's. Nothing is changed.
        """
        found = self._found(passed)
        self._batches = tuple(
            StagedBatch(
                staged,
                self._area,
                self._engine,
                self._runner,
                self._told,
                self._engine.unpacked(staged.parts),
            )
            for staged in found
        )
        if found:
            _logger.info("%s: %d staged batches are committed", self._runner.group, len(found))
        self._committer = Committer(self._runner)
        for batch in self._batches:
            self._committer.take(batch)

    @property
    def next_txid(self) -> int:
        """The batch that is computed next."""
        return self._batches[-1].token.txid + 1 if self._batches else self._runner.next_txid

    def may_run(self, txid: int, query_id: str) -> bool:
        """Whether `txid` may be staged; else the runner takes it, once all others are committed.

        It finds replays then, which are passed over, and what doesn't fit.
        """
        known = self._batches[-1].query_id if self._batches else self._runner.query_id
        return self._most > 1 and txid == self.next_txid and known in (None, query_id)

    def run(self, txid: int, digest: str, query_id: str, compute: Compute) -> None:
        """Compute and stage the next batch; return when it may be told of as done.

        Where it can't be computed it is committed before this returns, as a further attempt.

        Raises as `BatchRunner.run`, also for an earlier batch.
        """
        while self._batches and (self._batches[0].is_done or is_full(self._batches, self._most)):
            self._finish()
        staged = StagedFile(self._runner.log_id, query_id, txid, digest)
        batch = StagedBatch(staged, self._area, self._engine, self._runner, self._told, compute)
        try:
            batch.stage(ControlRecord("", batch.token, txid - 1))
        except Exception as failure:
            self.settle()
            self._told(batch.commit(self._runner, failure), None)
            return
        self._batches += (batch,)
        assert self._committer is not None
        self._committer.take(batch)

    def settle(self) -> None:
        """Wait until all staged batches are committed; raise what one has failed with."""
        while self._batches:
            self._finish()

    def wait(self) -> None:
        """Wait until nothing that is staged now is left to commit; in any thread."""
        for batch in self._batches:
            with suppress(Exception):  # which was told of
                batch.wait()

    def close(self) -> None:
        """Commit what is staged, unless one has failed, and end; may be repeated."""
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close()

    def _finish(self) -> None:
        self._batches[0].wait()
        self._batches = self._batches[1:]

    def _found(self, passed: int) -> list[StagedFile]:
        """What is staged and not committed; remove what is committed."""
        place, runner = str(self._area.folder), self._runner
        last = committed = runner.next_txid - 1
        found = []
        for staged in self._area.staged():
            if staged.log_id != runner.log_id:
                raise StagingError(
                    place,
                    f"batch {staged.txid} was staged for the log {staged.log_id}, but this is "
                    f"{runner.log_id}",
                    "Restore the log and what is staged from one backup; or, to go on without "
                    "what is staged, move it away.",
                )
            if staged.txid <= committed:
                self._area.remove(staged)
                continue
            if staged.txid != last + 1:
                raise self._missing(last + 1, f"but batch {staged.txid} is there")
            found.append(staged)
            last = staged.txid
        if last < passed:
            raise self._missing(last + 1, f"but {runner.source} is done with batch {passed}")
        return found

    def _missing(self, txid: int, found: str) -> StagingError:
        runner = self._runner
        return StagingError(
            str(self._area.folder),
            f"batch {txid} is neither committed nor staged, {found}",
            f"Without it nothing goes on from batch {txid - 1}. Restore the checkpoint as a whole "
            "from one backup. Or have Spark make the batches that are missing again, of what their "
            f"source still has: remove all that is staged, and from {runner.source}/offsets and "
            f"/commits the files numbered {txid - 1 - runner.base} and higher; then start again.",
        )
