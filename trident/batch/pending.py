"""The batches of a group of spouts that are emitted and not committed yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from trident.batch.ahead import Committer, ComputedBatch, FailedAttempt, is_full
from trident.batch.progress import BatchProgress
from trident.batch.runner import BatchRunner
from trident.batch.spout_work import SpoutWork
from trident.batch.work import NothingNew
from trident.states.values import Token


class Pending:
    """Runs batches: one at a time, or the next ones computed while one is committed.

    Sources are called by the thread that calls this. States are begun, written and announced one
    batch after the other, in order of the txid. A batch that fails takes those behind it with it:
    they are discarded, and emitted anew from what the log holds. While those that are computed take
    much memory no other is emitted: so a source waits for a store that is slow.

    Parameters
    ----------
    work : SpoutWork
        Emits and computes.
    runner : BatchRunner
        Commits.
    most : int
        How many batches may be emitted and not committed.
    progressed : callable
        Takes the progress of each committed batch, in their order.
    """

    def __init__(
        self,
        work: SpoutWork,
        runner: BatchRunner,
        most: int,
        progressed: Callable[[BatchProgress], None],
    ) -> None:
        self._work = work
        self._runner = runner
        self._most = most
        self._progressed = progressed
        self._batches: deque[ComputedBatch] = deque()
        self._committer = Committer(runner) if most > 1 else None

    @property
    def next_txid(self) -> int:
        """The batch that is emitted next."""
        return self._batches[-1].token.txid + 1 if self._batches else self._runner.next_txid

    def run(self) -> None:
        """Run the next batch; where batches overlap return when it is computed.

        May run none, where it has nothing, or an earlier one had to be run again.

        Raises as `BatchRunner.run`, also for an earlier batch.
        """
        if self._committer is None:
            with suppress(NothingNew):
                self._progressed(self._runner.run(self._work))
            return
        while self._batches and (self._batches[0].is_done or is_full(self._batches, self._most)):
            if not self._finish():
                return
        token, metadata, planned = self._due()
        try:
            batch = self._work.compute(token, metadata, planned)
        except NothingNew:
            return
        except Exception as failure:
            self.settle()
            if self._runner.next_txid == token.txid:  # else one before it has failed too
                self._progressed(self._runner.run(FailedAttempt(self._work, failure)))
            return
        self._batches.append(batch)
        self._committer.take(batch)

    def settle(self) -> bool:
        """Wait until all batches that were emitted are committed; return whether there were any.

        Raises as `BatchRunner.run`.
        """
        waited = bool(self._batches)
        while self._batches and self._finish():
            pass
        return waited

    def close(self) -> None:
        """Wait for the batch that is being committed; discard those behind it."""
        if self._committer is not None:
            self._runner.stopping.set()
            self._committer.close()
            while self._batches and self._finish():
                pass

    def _due(self) -> tuple[Token, Mapping[str, Any], Mapping[str, Any] | None]:
        if not self._batches:
            return self._runner.due
        last = self._batches[-1]
        return Token(last.token.txid + 1, 0), last.following, None

    def _finish(self) -> bool:
        """Wait for the first of the batches and acknowledge it; say whether it took none with it.

        One that has failed is run again, and those behind it are discarded.
        """
        assert self._committer is not None
        batch = self._batches.popleft()
        try:
            progress = batch.wait()
        except Exception as failure:
            self._discard()
            if self._runner.next_txid > batch.token.txid:  # it is committed, and can't be run again
                raise
            self._progressed(self._runner.run(FailedAttempt(self._work, failure)))
            return False
        if progress is None:
            self._batches.clear()
            return False
        self._work.committed(batch.token)
        self._progressed(progress)
        return True

    def _discard(self) -> None:
        """Drop the batches behind one that has failed, once the committer has passed over them."""
        assert self._committer is not None
        for batch in self._batches:
            batch.wait()
        self._batches.clear()
        self._committer.go_on()
