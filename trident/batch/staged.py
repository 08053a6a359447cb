"""The batches of Spark's clock that are computed and staged, and committed behind it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

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
OnEnd = Callable[[BatchProgress | None, BaseException | None], None]
"""Takes the progress of a batch, or what it failed with; in the thread that has committed it."""


class StagingEngine(Protocol):
    """An engine that can make what it has computed durable."""

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do the remaining work, and write the states; see `GroupEngine.write`."""

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
        engine: StagingEngine,
        compute: Compute,
        file: StagedFile,
        area: StagingArea,
        runner: BatchRunner,
    ) -> None:
        super().__init__(engine, compute)
        self.file = replace(file, parts={})
        self.token = Token(file.txid, 0)
        self.staged: Computed | None = None
        """What was computed and is staged; nothing once it is committed."""
        self._area = area
        self._runner = runner

    def compute(self, token: Token) -> Computed:
        """Compute the batch and make it durable, unless that is done."""
        if self.staged is not None:
            return self.staged
        computed = super().compute(token)
        assert isinstance(computed, Computed)  # batches that are postponed are not staged
        # A staged batch is committed in any case, by the next start too.
        counts, share = computed.outcome.counters, self._runner.bad_share
        share.check(token.txid, counts)
        reached("before stage", token)
        file = replace(self.file, counts=counts, parts=self._engine.packed(computed))
        self._runner.patience.do(partial(self._area.stage, file), file.txid, "the staging of ")
        share.keep(token.txid, counts)
        self.staged = computed
        reached("after stage", token)
        return computed

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        # A run that began before this file was there has not found it, and may have another one.
        self._runner.ledger.check_held()
        return super().write(record, computed)

    def remove(self) -> None:
        """Remove the file of the batch, which is committed, and let go of its tuples."""
        reached("before unstage", self.token)
        self._area.remove(self.file)
        reached("after unstage", self.token)
        self.staged = NOTHING_COMPUTED

    @property
    def nbytes(self) -> int:
        """Roughly how many bytes are kept until it is written."""
        return self.staged.nbytes if self.staged is not None else 0


class _Before(NamedTuple):
    """What has to fit to the batch before the next one."""

    txid: int
    digest: str | None
    query_id: str | None


class StagedBatches:
    """Stages batches, and has them committed behind their clock.

    A batch that fails takes nothing with it: those staged behind it stay, for its next attempt or
    for the next start. With a `most` of 1 no batch is staged.
    """

    def __init__(
        self,
        area: StagingArea,
        engine: StagingEngine,
        runner: BatchRunner,
        most: int,
        on_end: OnEnd,
    ) -> None:
        self._area = area
        self._engine = engine
        self._runner = runner
        self._ledger = runner.ledger
        self._most = most
        self._on_end = on_end
        self._pending: tuple[Pending[StagedBatch, BatchProgress], ...] = ()
        self._committer: Committer[StagedBatch, BatchProgress] | None = None

    def open(self, passed: int) -> None:
        """Have committed what an earlier run has staged, once; raise if a batch up to `passed` is
        missing."""
        files = [replace(each, claim=self._ledger.claim) for each in self._find_staged(passed)]
        batches = [self._staged_before(file) for file in files]
        for file in files:
            self._area.stage(file)
            self._runner.bad_share.keep(file.txid, file.counts)
        if files:
            _logger.info("%s: %d staged batches are committed", self._runner.group, len(files))
        committer = Committer(self._commit, f"trident-{self._runner.group}-commit")
        self._committer = committer
        self._pending = tuple(committer.take(batch) for batch in batches)

    @property
    def next_txid(self) -> int:
        """The batch that is computed next."""
        return self._before.txid + 1

    @property
    def _before(self) -> _Before:
        """The batch before the one that is computed next."""
        if not self._pending:
            entry = self._ledger.entry
            return _Before(entry.committed, entry.digest, entry.query_id)
        file = self._pending[-1].batch.file
        return _Before(file.txid, file.digest, file.query_id)

    def check_before(self, txid: int, digest: Callable[[], str]) -> None:
        """Raise ReplayError if the batch before `txid` has another digest for the clock."""
        before, known, _ = self._before
        if txid == before + 1 and known is not None and known != (found := digest()):
            raise ReplayError(self._ledger.log.place, self._ledger.source, before, known, found)

    def run(self, txid: int, digest: str, query_id: str, compute: Compute) -> None:
        """Compute and stage the next batch, or commit it if that fails; return when Spark may go
        on.

        A batch that may not be staged, as a replay, is run behind all others.
        """
        before = self._before
        fits = txid == before.txid + 1 and before.query_id in (None, query_id)
        if self._most == 1 or not fits:
            self.settle()
            work = FrameBatch(self._engine, compute)
            self._on_end(self._runner.run(work, txid, digest=digest, query_id=query_id), None)
            return
        while self._pending and (self._pending[0].is_done or is_full(self._pending, self._most)):
            self._finish()
        ledger = self._ledger
        log_id, claim = ledger.entry.log_id, ledger.claim
        batch = self._batch(
            StagedFile(log_id, claim, query_id, txid, digest, before.digest), compute
        )
        try:
            batch.compute(batch.token)
        except Exception as failure:
            self.settle()
            self._commit(batch, failure)
            return
        assert self._committer is not None
        self._pending += (self._committer.take(batch),)

    def settle(self) -> None:
        """Wait until all staged batches are committed; raise what one has failed with."""
        while self._pending:
            self._finish()

    def wait(self) -> None:
        """Wait until all batches that are staged now are committed; in any thread."""
        for pending in self._pending:
            with suppress(Exception):  # which was reported already
                pending.wait()

    def close(self) -> None:
        """Commit what is staged, unless one has failed, and end; may be repeated."""
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close()

    def _finish(self) -> None:
        self._pending[0].wait()
        self._pending = self._pending[1:]

    def _batch(self, file: StagedFile, compute: Compute) -> StagedBatch:
        return StagedBatch(self._engine, compute, file, self._area, self._runner)

    def _staged_before(self, file: StagedFile) -> StagedBatch:
        """A batch that an earlier run has computed."""
        computed = self._engine.unpacked(file.parts)
        outcome = replace(computed.outcome, counters=file.counts)
        batch = self._batch(file, lambda record: NOTHING_COMPUTED)
        batch.staged = replace(computed, outcome=outcome)
        return batch

    def _commit(self, batch: StagedBatch, failure: Exception | None = None) -> BatchProgress:
        """Commit a batch in as many attempts as it takes; its end is reported before any waiter
        wakes."""
        file = batch.file
        try:
            progress = self._runner.run(
                batch, file.txid, digest=file.digest, query_id=file.query_id, failure=failure
            )
            batch.remove()
        except BaseException as error:
            if failure is None:
                self._on_end(None, error)
            raise
        self._on_end(progress, None)
        return progress

    def _find_staged(self, passed: int) -> list[StagedFile]:
        """The files of batches that are not committed; remove those of committed ones."""
        ledger, entry = self._ledger, self._ledger.entry
        last, digest, found = entry.committed, entry.digest, []
        for staged in self._area.staged():
            if staged.log_id != entry.log_id:
                raise StagingError(
                    self._area.folder.place,
                    f"batch {staged.txid} was staged for the log {staged.log_id}, but this is "
                    f"{entry.log_id}",
                    "Restore the log and what is staged from one backup; or, to go on without "
                    "what is staged, move it away.",
                )
            if staged.txid <= entry.committed:
                self._area.remove(staged)
                continue
            if staged.txid != last + 1:
                raise self._missing(last + 1, f"but batch {staged.txid} is there")
            if staged.before != digest:
                raise ReplayError(ledger.log.place, ledger.source, last, digest, staged.before)
            found.append(staged)
            last, digest = staged.txid, staged.digest
        if last < passed:
            raise self._missing(last + 1, f"but {ledger.source} is done with batch {passed}")
        return found

    def _missing(self, txid: int, found: str) -> StagingError:
        source, base = self._ledger.source, self._ledger.entry.base
        return StagingError(
            self._area.folder.place,
            f"batch {txid} is neither committed nor staged, {found}",
            f"Without it nothing goes on from batch {txid - 1}. Restore the checkpoint as a whole "
            "from one backup. Or have Spark make the batches that are missing again, of what their "
            f"source still has: remove all that is staged, and from {source}/offsets and "
            f"/commits the files numbered {txid - 1 - base} and higher; then start again.",
        )
