"""One batch after the other, exactly once: make, place, begin, write, ready, commit, announce."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from time import time

from trident.batch.attempt import Attempt, Due, Making, Stopwatch
from trident.batch.bad_share import BadShare
from trident.batch.computed import Computed, Postponed
from trident.batch.errors import BatchInterruptedError
from trident.batch.failures import FailurePolicy, Patience, Retries
from trident.batch.ledger import Ledger
from trident.batch.monitor import Monitor
from trident.batch.opening import LogTerms, opening_entry
from trident.batch.outcome import Outcome
from trident.batch.progress import BatchProgress
from trident.batch.states import BatchState, GroupStates
from trident.batch.watchpoints import reached
from trident.batch.work import BatchWork, NothingNew
from trident.log.entry import LogEntry
from trident.log.log import Log
from trident.operations.counters import bad_tuples, user_counts
from trident.states.control import ControlRecord
from trident.states.errors import (
    CopiedLogError,
    LostWritesError,
    StaleBatchError,
    UnavailableError,
)
from trident.states.values import Token

MOST_RETRIED = 192
"""How many batches a log remembers by the attempt that has committed, if it can forget them."""


class BatchRunner:
    """The batches of one group, whatever engine runs them and whatever clock makes them.

    Making a batch touches no store and no log, so it may be made before the batch before it has
    committed. Lives on the driver. :meth:`commit` may be called by another thread than the rest,
    while no attempt is tried again. `source` is how errors name the log of what makes the batches.
    Setting `stopping` ends every wait.
    """

    def __init__(
        self,
        log: Log,
        states: Mapping[str, BatchState],
        *,
        group: str,
        source: str = "the source",
        policy: FailurePolicy | None = None,
        stopping: threading.Event | None = None,
        making: Making | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        self.group = group
        self.monitor = monitor or Monitor()
        """Learns which attempts fail; the clock reports finished batches to it."""
        self.stopping = stopping or threading.Event()
        policy = policy or FailurePolicy()
        self.patience = Patience(group, policy, self.stopping)
        """Waits for a store or a disk that is away."""
        self.ledger = Ledger(log, source, self.patience)
        """The group's log during this run."""
        self._states = GroupStates(states)
        self._making = making or Making()
        policy.check(self._states.inexact)
        self.bad_share = BadShare(group, policy.max_errors)
        """Refuses a batch that has left out too many tuples."""
        self._begun = False

    def open(self, terms: LogTerms) -> None:
        """Take the log, and tell every state what it has committed; once, before any batch.

        Doesn't wait for a store that is away: this run has never reached it, so its address may be
        wrong.
        """
        ledger, states = self.ledger, self._states
        entry = opening_entry(ledger.log, self.group, states, terms)
        first = states.accept(states.recall(entry), terms.accept_loss)
        ledger.begin(first)
        if first.follows_storm or (first.number == 1 and not first.adopted):
            states.own(first, states.controls)
        states.own(first, [name for name, held in first.accepted.items() if held is None])
        try:
            begun = self._catch_up(first)
        except CopiedLogError as error:
            raise replace(error, damage=ledger.log.damage) from None
        states.check_keys(first)
        last, recovered = ledger.last, first.number > 1
        self.monitor.started(
            first.begun,
            recovered=recovered,
            under_way=recovered and (begun or first.planned is not None),
            committed=last and last.txid,
        )

    @property
    def next_txid(self) -> int:
        """The batch that is due."""
        return self.ledger.entry.committed + 1

    def is_committed(self, token: Token) -> bool:
        """Whether the batch of `token` is committed."""
        return token.txid < self.next_txid

    def run(
        self,
        work: BatchWork,
        txid: int | None = None,
        *,
        digest: str | None = None,
        query_id: str | None = None,
        failure: Exception | None = None,
    ) -> BatchProgress:
        """Run one batch until it is committed and announced; skip a committed one.

        The digest is what the source says that the batch covers: a replay's must be equal, and
        `query_id`, Spark's of the streaming query, must stay the same. `failure` is what its first
        attempt has failed with already. A replay has 0 attempts.

        Whatever is raised, the batch is kept. After TakenOverError and LogConflictError another run
        has taken over, and this one has changed nothing since. `NothingNew` is no failure.
        """
        self._check_usable()
        ledger = self.ledger
        if ledger.is_replay(txid, digest, query_id):
            entry, last = ledger.entry, ledger.last
            assert last is not None
            self._announce(last.txid, lambda: self._states.catch_up(entry))
            work.committed(last)
            return BatchProgress(self.group, last.txid, attempts=0, at=time())
        return self.finish(work, ledger.due.token, failure, digest=digest, query_id=query_id)

    def finish(
        self,
        work: BatchWork,
        token: Token,
        failure: Exception | None = None,
        *,
        digest: str | None = None,
        query_id: str | None = None,
    ) -> BatchProgress:
        """Run the batch that is due in as many attempts as it takes."""
        watch = Stopwatch()
        retries = Retries(self.patience, token.txid, not self._states.inexact)
        retries.attempts = 0 if failure is None else 1
        while True:
            if failure is not None:
                self._wait_after(token, failure, watch, retries)
                failure = None
            if retries.attempts:
                try:
                    self._take_next_attempt()
                except UnavailableError as away:
                    retries.wait(token, away)
                    continue
            token, watch = self.ledger.due.token, Stopwatch()
            retries.attempts += 1
            try:
                attempt = self.make(work, dead_letter=retries.dead_letter)
                outcome = self.commit(attempt, digest=digest, query_id=query_id)
                break
            except (NothingNew, BatchInterruptedError):
                raise
            except Exception as error:
                if self.is_committed(token):  # the failure came after the commit
                    raise
                failure = error
        retries.end()
        return self.acknowledge(attempt, outcome, retries.attempts)

    def _wait_after(
        self, token: Token, failure: Exception, watch: Stopwatch, retries: Retries
    ) -> None:
        """Wait after a failed attempt; raise if no other one may follow."""
        if not isinstance(failure, BatchInterruptedError):
            self.monitor.attempt_failed(token, failure, watch.elapsed)
        if isinstance(failure, StaleBatchError):
            following = Token(token.txid, token.attempt + 1)
            self.patience.do(partial(self._check_overtaken, following), token.txid)
        retries.wait(token, failure)

    def make(
        self, work: BatchWork, due: Due | None = None, dead_letter: str | None = None
    ) -> Attempt:
        """Plan, emit and compute an attempt, by default the due one; touches no store and no
        log."""
        return self._making.make(work, due or self.ledger.due, dead_letter)

    def commit(
        self, attempt: Attempt, *, digest: str | None = None, query_id: str | None = None
    ) -> Outcome:
        """Begin what was made, at every state, write it, commit it, and announce it.

        Raises what the attempt failed with. Unless :meth:`is_committed` is then true,
        :meth:`finish` has to run the batch's next attempt before any later batch is committed.
        """
        try:
            return self._commit(attempt, digest, query_id)
        finally:
            self._states.drop_prepared()

    def _commit(self, attempt: Attempt, digest: str | None, query_id: str | None) -> Outcome:
        self._check_usable()
        computed = attempt.result()
        self._begun = True
        watch, states, token = attempt.watch, self._states, self.ledger.entry.begun
        watch.go_on()
        outcome, ready, swept = Outcome(), None, False
        if computed is not None:
            outcome, ready, swept = self._write(attempt, computed)
        attempt.work.committing(token)
        reached("before commit", token)
        self.ledger.commit(
            attempt.metadata,
            () if ready is None else states.controls,
            digest,
            query_id,
            swept,
            None if ready is None else ready.announced().reached,
        )
        reached("after commit", token)
        watch.done("commit")
        if ready is not None:
            reached("before announce", token)
            self._announce(token.txid, partial(states.announce, ready))
            reached("after announce", token)
            watch.done("announce")
        self._begun = False
        return outcome

    def _write(
        self, attempt: Attempt, computed: Computed | Postponed
    ) -> tuple[Outcome, ControlRecord, bool]:
        """Begin, write and make ready; return what was done, what is to be announced, and whether
        failed attempts were swept away."""
        states, watch, entry = self._states, attempt.watch, self.ledger.entry
        token, outcome = entry.begun, Outcome()
        if isinstance(computed, Computed):  # before any state is written
            self.bad_share.check(token.txid, computed.outcome.counters)
        if attempt.planned is not entry.planned:
            entry = self.ledger.append(planned=attempt.planned)
            watch.done("plan")
        reached("before begin", token)
        begun = states.begin(entry, self._making.moment() if self._making.ageing else None)
        if attempt.active:  # an opaque spout's emission isn't repeated, so the log needn't have it
            begun = replace(begun, active=attempt.active)
        reached("after begin", token)
        watch.done("begin")
        reached("before write", token)
        # A time in the future would let all entries expire at once, and its own entry never.
        begun = replace(begun, reaches=int(time() * 1000))
        if attempt.dead_letter is None:
            outcome = attempt.work.write(begun, computed)
            if isinstance(computed, Postponed):
                self.bad_share.check(token.txid, outcome.counters)
        begun = replace(begun, reaches=outcome.reached)
        swept = (
            len(entry.retried) >= MOST_RETRIED and states.can_sweep(entry) and states.sweep(begun)
        )
        states.sweep_expired(begun, entry, outcome.written)
        reached("after write", token)
        watch.done("run")
        reached("before ready", token)
        ready = states.ready(begun)
        reached("after ready", token)
        watch.done("ready")
        return outcome, ready, swept

    def acknowledge(self, attempt: Attempt, outcome: Outcome, attempts: int = 1) -> BatchProgress:
        """Tell the sources of a committed attempt; return the progress of its batch."""
        token, watch = attempt.token, attempt.watch
        watch.go_on()
        attempt.work.committed(token)
        watch.done("acknowledge")
        return BatchProgress(
            self.group,
            token.txid,
            attempts=attempts,
            tuples=outcome.tuples,
            keys_read=outcome.read,
            keys_written=outcome.written,
            cache_hits=outcome.cache_hits,
            late=outcome.late,
            seconds={**watch.seconds, **outcome.seconds},
            engine=outcome.engine,
            counters=user_counts(outcome.counters),
            bad_tuples=bad_tuples(outcome.counters),
            dead_letter=attempt.dead_letter,
            at=time(),
        )

    def _check_usable(self) -> None:
        if self._begun:
            raise RuntimeError("this run has failed: a new one begins the batch's next attempt")

    def _take_next_attempt(self) -> None:
        """Take another number, if this one has begun, once every store answers."""
        self._states.check_reachable()
        if self._begun:
            self.ledger.take_next_attempt()
            self._begun = False

    def _catch_up(self, first: LogEntry) -> bool:
        """Tell every state what is committed, before the first batch; see
        :meth:`GroupStates.catch_up`."""
        try:
            return self._states.catch_up(first)
        except StaleBatchError:
            self._check_overtaken(first.begun)
            raise
        except LostWritesError:
            # The driver before may have been writing the record while it was read.
            self.ledger.check_held()
            return self._states.catch_up(first)

    def _check_overtaken(self, others: Token) -> None:
        """Raise if another run, or a copy of this log, has begun an attempt from `others` on."""
        self.ledger.check_held()
        entry = self.ledger.entry
        for name, control in self._states.controls.items():
            found = control.read()
            if found is not None and found.log_id == entry.log_id and found.token >= others:
                raise CopiedLogError(name, found.token, entry.committed, control.where)

    def _announce(self, txid: int, tell_states: Callable[[], object]) -> None:
        """Tell the states what is committed, however long they are away: it can't fail now."""
        self.patience.do(tell_states, txid, "the announcement of ")
