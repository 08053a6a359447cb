"""The batches of a group of spouts that are emitted and not committed yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress

from trident.batch.attempt import Attempt
from trident.batch.committer import Committer, Pending, is_full
from trident.batch.outcome import Outcome
from trident.batch.progress import BatchProgress
from trident.batch.runner import BatchRunner
from trident.batch.spout_work import SpoutWork
from trident.batch.work import NothingNew
from trident.states.errors import FailedException
from trident.states.values import Token


class PendingBatches:
    """Emits and computes batches, and has them committed: one after the other, in order.

    Sources are called by the thread that calls this. Up to `most` batches are under way. A single
    one is committed by the same thread. If there may be more, another thread commits them while the
    next are computed. If a batch fails, those behind it are discarded, and emitted anew from what
    the log holds. No batch is emitted while the others take much memory, so a slow store makes a
    source wait.
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
        self._pending: deque[Pending[Attempt, Outcome]] = deque()
        self._committer: Committer[Attempt, Outcome] | None = None
        if most > 1:
            self._committer = Committer(self._commit, f"trident-{runner.group}-commit")

    @property
    def next_txid(self) -> int:
        """The batch that is emitted next."""
        if self._pending:
            return self._pending[-1].batch.token.txid + 1
        return self._runner.next_txid

    def run(self) -> None:
        """Run the next batch, or an earlier one again; return when there is room for another
        one."""
        due = self._pending[-1].batch.following if self._pending else self._runner.ledger.due
        try:
            attempt = self._runner.make(self._work, due)
        except NothingNew:
            return
        except Exception as failure:
            self.settle()
            self._try_again(due.token, failure)
            return
        self._pending.append(self._take(attempt))
        del attempt
        while self._pending and (self._pending[0].is_done or is_full(self._pending, self._most)):
            self._finish()

    def settle(self) -> bool:
        """Wait until all batches that were emitted are committed; return whether there were any."""
        waited = bool(self._pending)
        while self._pending:
            self._finish()
        return waited

    def close(self) -> None:
        """Wait for the batch that is being committed; discard those behind it, try none again."""
        if self._committer is None:
            return
        self._runner.stopping.set()
        self._committer.close()
        while self._pending:
            first = self._pending.popleft()
            try:
                self._acknowledge(first)
            except FailedException:
                if self._runner.is_committed(first.batch.token):
                    raise

    def _take(self, attempt: Attempt) -> Pending[Attempt, Outcome]:
        """Have an attempt committed: by the committer, else at once."""
        if self._committer is not None:
            return self._committer.take(attempt)
        pending: Pending[Attempt, Outcome] = Pending(attempt)
        try:
            pending.end(self._runner.commit(attempt))
        except BaseException as failure:
            pending.end(failure=failure)
        return pending

    def _commit(self, attempt: Attempt) -> Outcome | None:
        """Commit an attempt, in the committer's thread, unless the run is to stop."""
        return None if self._runner.stopping.is_set() else self._runner.commit(attempt)

    def _finish(self) -> None:
        """Acknowledge the first batch when it is committed. If it fails, try it again, and discard
        those behind it."""
        first = self._pending.popleft()
        token = first.batch.token
        try:
            self._acknowledge(first)
        except Exception as failure:
            if self._runner.is_committed(token):  # so it can't be tried again
                raise
            first.forget_failure()
            del first
            self._discard()
            self._try_again(token, failure)

    def _acknowledge(self, pending: Pending[Attempt, Outcome]) -> None:
        outcome = pending.wait()
        if outcome is not None:
            self._progressed(self._runner.acknowledge(pending.batch, outcome))

    def _try_again(self, token: Token, failure: Exception) -> None:
        """Run a failed batch again, unless it was discarded with one before it."""
        if self._runner.next_txid == token.txid:
            with suppress(NothingNew):
                self._progressed(self._runner.finish(self._work, token, failure))

    def _discard(self) -> None:
        """Drop the batches behind one that has failed, once the committer has skipped them."""
        while self._pending:
            discarded = self._pending.popleft()
            discarded.wait()
            discarded.batch.discard()  # its next emission keeps its tuples under the same names
        if self._committer is not None:
            self._committer.go_on()
