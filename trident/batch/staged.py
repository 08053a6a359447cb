"""The batches of Spark's clock that are computed and staged, and committed behind it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

from trident.batch.committer import Committer, Pending, is_full
from trident.batch.computed import NOTHING_COMPUTED, Computed, Postponed
from trident.batch.outcome import Outcome
from trident.batch.progress import BatchProgress
from trident.batch.runner import BatchRunner
from trident.batch.watchpoints import reached
from trident.batch.work import BatchWork
from trident.log.errors import ReplayError, StagingError
from trident.log.staging import StagedFile, StagingArea
from trident.states.control import ControlRecord
from trident.states.values import Token

_logger = logging.getLogger("trident")

Compute = Callable[[ControlRecord], Computed | Postponed]
"""Runs the steps of a batch that can run before it begins; of the record only the token counts."""
Told = Callable[[BatchProgress | None, BaseException | None], None]
"""Takes the progress of a batch, or what it failed with; in the thread that has committed it."""


class StagingEngine(Protocol):
    """An engine that can make what it has computed durable."""

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do what is left, and write the states; see `GroupEngine.write`."""

    def packed(self, computed: Computed) -> Mapping[str, bytes | memoryview]:
        """Return what is needed to make the updates, by the name of the state."""

    def unpacked(self, parts: Mapping[str, bytes | memoryview]) -> Computed:
        """Return what :meth:`packed` was given; refuse that of another topology."""


class FrameBatch(BatchWork):
    """A batch of Spark's clock."""

    def __init__(self, engine: StagingEngine, compute: Compute) -> None:
        self._engine = engine
        self._compute = compute

    def compute(self, token: Token) -> Computed | Postponed:
        return self._compute(ControlRecord("", token, token.txid - 1))

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        return self._engine.write(record, computed)


class StagedBatch(FrameBatch):
    """A batch that is computed once, staged before any state is written, and then committed."""

    def __init__(
        self,
        staged: StagedFile,
        area: StagingArea,
        engine: StagingEngine,
        runner: BatchRunner,
        computed: Computed | Compute,
    ) -> None:
        super().__init__(engine, lambda record: NOTHING_COMPUTED)
        self._known: Computed | None = None
        if isinstance(computed, Computed):
            self._known = computed
        else:
            self._compute = computed
        self.file = replace(staged, parts={})
        self.token = Token(staged.txid, 0)
        self._area = area
        self._runner = runner

    def compute(self, token: Token) -> Computed:
        """Compute the batch and make it durable, unless that is done."""
        if self._known is not None:
            return self._known
        computed = super().compute(token)
        assert isinstance(computed, Computed)  # batches that are postponed are not staged
        # What is staged is committed, by the next start too.
        counts, share = computed.outcome.counters, self._runner.bad_share
        share.check(token.txid, counts)
        reached("before stage", token)
        staged = replace(self.file, counts=counts, parts=self._engine.packed(computed))
        stage = partial(self._area.stage, staged)
        self._runner.patience.do(stage, staged.txid, "the staging of ")
        share.keep(token.txid, counts)
        self._known = computed
        reached("after stage", token)
        return computed

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        # A run that has begun before this has not found the file, and has perhaps another one.
        self._runner.check_held()
        return super().write(record, computed)

    def remove(self) -> None:
        """Remove what is staged, as it is committed, and let go of the tuples."""
        reached("before unstage", self.token)
        self._area.remove(self.file)
        reached("after unstage", self.token)
        self._known = NOTHING_COMPUTED

    @property
    def nbytes(self) -> int:
        """Roughly how many bytes are kept until it is written."""
        return self._known.nbytes if self._known is not None else 0


class StagedBatches:
    """Stages batches, and has them committed behind their clock.

    A batch that fails takes nothing with it: what is staged behind it stays so, for its next
    attempt or for the next start. `told` takes the end of each batch.
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
        self._pending: tuple[Pending[StagedBatch, BatchProgress], ...] = ()
        self._committer: Committer[StagedBatch, BatchProgress] | None = None

    def open(self, passed: int) -> None:
        """Have committed what an earlier run has staged, once; raise where batches up to `passed`
        lack."""
        found = self._found(passed)
        ours = [replace(each, claim=self._runner.claim) for each in found]
        batches = [self._batch(staged, self._unpacked(staged)) for staged in ours]
        for staged in ours:
            self._area.stage(staged)
            self._runner.bad_share.keep(staged.txid, staged.counts)
        if found:
            _logger.info("%s: %d staged batches are committed", self._runner.group, len(found))
        committer = Committer(self._commit, f"trident-{self._runner.group}-commit")
        self._committer = committer
        self._pending = tuple(committer.take(batch) for batch in batches)

    @property
    def next_txid(self) -> int:
        """The batch that is computed next."""
        return self._pending[-1].batch.token.txid + 1 if self._pending else self._runner.next_txid

    @property
    def _last_digest(self) -> str | None:
        """That of the batch before the one that is computed next."""
        return self._pending[-1].batch.file.digest if self._pending else self._runner.digest

    def check_before(self, txid: int, digest: Callable[[], str]) -> None:
        """Raise ReplayError where the clock takes the batch before for another than it was."""
        if txid == self.next_txid:
            runner, known = self._runner, self._last_digest
            if known is not None and known != (found := digest()):
                raise ReplayError(runner.place, runner.source, txid - 1, known, found)

    def may_run(self, txid: int, query_id: str) -> bool:
        """Whether `txid` may be staged; else, as a replay, the runner takes it behind all
        others."""
        pending, runner = self._pending, self._runner
        known = pending[-1].batch.file.query_id if pending else runner.query_id
        return self._most > 1 and txid == self.next_txid and known in (None, query_id)

    def run(self, txid: int, digest: str, query_id: str, compute: Compute) -> None:
        """Compute and stage the next batch, or commit it where that fails; return when Spark may go
        on."""
        while self._pending and (self._pending[0].is_done or is_full(self._pending, self._most)):
            self._finish()
        runner = self._runner
        before = self._last_digest
        file = StagedFile(runner.log_id, runner.claim, query_id, txid, digest, before)
        batch = self._batch(file, compute)
        try:
            batch.compute(batch.token)
        except Exception as failure:
            self.settle()
            self._commit(batch, failure)
            return
        assert self._committer is not None
        self._pending += (self._committer.take(batch),)

    def run_unstaged(self, txid: int, digest: str, query_id: str, compute: Compute) -> None:
        """Run a batch that may not be staged, once all others are committed; return then."""
        self.settle()
        work = FrameBatch(self._engine, compute)
        self._told(self._runner.run(work, txid, digest=digest, query_id=query_id), None)

    def settle(self) -> None:
        """Wait until all staged batches are committed; raise what one has failed with."""
        while self._pending:
            self._finish()

    def wait(self) -> None:
        """Wait until nothing that is staged now is left to commit; in any thread."""
        for pending in self._pending:
            with suppress(Exception):  # which was told of
                pending.wait()

    def close(self) -> None:
        """Commit what is staged, unless one has failed, and end; may be repeated."""
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close()

    def _finish(self) -> None:
        self._pending[0].wait()
        self._pending = self._pending[1:]

    def _unpacked(self, staged: StagedFile) -> Computed:
        computed = self._engine.unpacked(staged.parts)
        return replace(computed, outcome=replace(computed.outcome, counters=staged.counts))

    def _batch(self, staged: StagedFile, computed: Computed | Compute) -> StagedBatch:
        return StagedBatch(staged, self._area, self._engine, self._runner, computed)

    def _commit(self, batch: StagedBatch, failure: Exception | None = None) -> BatchProgress:
        """Commit a batch in as many attempts as it takes; its end is told before anyone waits for
        it."""
        file = batch.file
        try:
            progress = self._runner.run(
                batch, file.txid, digest=file.digest, query_id=file.query_id, failure=failure
            )
            batch.remove()
        except BaseException as error:
            if failure is None:
                self._told(None, error)
            raise
        self._told(progress, None)
        return progress

    def _found(self, passed: int) -> list[StagedFile]:
        """What is staged and not committed; remove what is committed."""
        place, runner = self._area.folder.place, self._runner
        last = committed = runner.next_txid - 1
        digest, found = runner.digest, []
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
            if staged.before != digest:
                raise ReplayError(runner.place, runner.source, last, digest, staged.before)
            found.append(staged)
            last, digest = staged.txid, staged.digest
        if last < passed:
            raise self._missing(last + 1, f"but {runner.source} is done with batch {passed}")
        return found

    def _missing(self, txid: int, found: str) -> StagingError:
        runner = self._runner
        return StagingError(
            self._area.folder.place,
            f"batch {txid} is neither committed nor staged, {found}",
            f"Without it nothing goes on from batch {txid - 1}. Restore the checkpoint as a whole "
            "from one backup. Or have Spark make the batches that are missing again, of what their "
            f"source still has: remove all that is staged, and from {runner.source}/offsets and "
            f"/commits the files numbered {txid - 1 - runner.base} and higher; then start again.",
        )
