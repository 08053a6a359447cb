"""One batch after the other, exactly once: make, place, begin, write, ready, commit, announce."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from time import time
from types import MappingProxyType

from trident.batch.adopt import Adopt
from trident.batch.attempt import Attempt, Due, Making, Stopwatch
from trident.batch.bad_share import BadShare
from trident.batch.changes import Topology
from trident.batch.computed import Computed, Postponed
from trident.batch.errors import BatchInterruptedError
from trident.batch.failure_policy import DEFAULT_POLICY, FailurePolicy
from trident.batch.ledger import Ledger
from trident.batch.monitor import Monitor
from trident.batch.opening import opening_entry
from trident.batch.outage import Patience, Retries
from trident.batch.outcome import Outcome
from trident.batch.progress import BatchProgress
from trident.batch.states import BatchState, GroupStates
from trident.batch.watchpoints import reached
from trident.batch.work import BatchWork, NothingNew
from trident.log.checkpoint import FolderAt, local_folder
from trident.log.entry import LogEntry
from trident.log.log import Log
from trident.operations.counters import bad_tuples, users_own
from trident.plan.nodes import Clock
from trident.states.errors import (
    CopiedLogError,
    LostWritesError,
    StaleBatchError,
    UnavailableError,
)
from trident.states.values import Token

MOST_RETRIED = 192
"""How many batches a log remembers by the attempt that has committed, where it can forget them."""


class BatchRunner:
    """The batches of one group, whatever engine runs them and whatever clock makes them.

    To make a batch touches no store and no log, so it may come before the batch before has
    committed. Lives on the driver; :meth:`commit` may be another thread's than the other calls,
    while no attempt is tried again. `source` is how errors name the log of what makes the batches.
    Who stops the run sets `stopping`, which ends every wait.
    """

    def __init__(
        self,
        log: Log,
        states: Mapping[str, BatchState],
        *,
        group: str,
        source: str = "the source",
        policy: FailurePolicy = DEFAULT_POLICY,
        stopping: threading.Event | None = None,
        making: Making | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        self.group = group
        self.source = source
        self.monitor = monitor or Monitor()
        """Is told which attempts fail; the clock tells it of batches that are finished."""
        self.stopping = stopping or threading.Event()
        self.patience = Patience(group, policy, self.stopping)
        """Waits for a store or a disk that is away."""
        self.claim = 0
        """The number of the entry with which this run began; that of a later run is higher."""
        self._log = log
        self._ledger = Ledger(log, source, self.patience)
        self.check_held = self._ledger.check_held
        """Reads the log; raises TakenOverError where another run has it by now."""
        self._states = GroupStates(states)
        self._making = making or Making()
        policy.check(self._states)
        self.bad_share = BadShare(group, policy.max_errors)
        """Refuses a batch that has left out too many tuples."""
        self._begun = False

    def open(
        self,
        *,
        streams: Mapping[str, str],
        reads: Mapping[str, str] = MappingProxyType({}),
        clock: Clock = "spout",
        adopt: Adopt | None = None,
        accept_loss: Mapping[str, int] = MappingProxyType({}),
        topology: Topology = MappingProxyType({}),
        accept_change: Mapping[str, str] = MappingProxyType({}),
        folder_at: FolderAt = local_folder,
    ) -> None:
        """Take the log, and tell every state what it has committed; once, before any batch.

        Waits for nobody: a store that this run has never reached may not be where it is said to be.

        `reads` has what each stream of files reads; it must stay the same. `adopt` is ignored once
        that is done; see :func:`adopt_state`, and for the others :meth:`GroupStates.accept` and
        :func:`check_unchanged`. Without a topology nothing is compared.
        """
        entry = opening_entry(
            self._log,
            self.group,
            self._states,
            streams=streams,
            reads=reads,
            clock=clock,
            adopt=adopt,
            topology=topology,
            accept_change=accept_change,
            folder_at=folder_at,
        )
        first = self._states.accept(self._states.recall(entry), accept_loss)
        self._ledger.begin(first)
        self.claim = first.number
        if first.follows_storm or (first.number == 1 and not first.adopted):
            self._states.own(first, self._states.controls)
        self._states.own(first, [name for name, held in first.accepted.items() if held is None])
        try:
            begun = self._catch_up(first)
        except CopiedLogError as error:
            raise replace(error, damage=self._log.damage) from None
        self._states.check_keys(first)
        last, recovered = self.last, first.number > 1
        self.monitor.started(
            first.begun,
            recovered=recovered,
            under_way=recovered and (begun or first.planned is not None),
            committed=last and last.txid,
        )

    @property
    def log_id(self) -> str:
        """The id of the log."""
        return self._ledger.entry.log_id

    @property
    def place(self) -> str:
        """Where the log is."""
        return self._log.place

    @property
    def digest(self) -> str | None:
        """What the source has said that the last committed batch covers."""
        return self._ledger.entry.digest

    @property
    def query_id(self) -> str | None:
        """Spark's id of the streaming query; None for spouts and before the first commit."""
        return self._ledger.entry.query_id

    @property
    def base(self) -> int:
        """The txid before the log's first: Spark's batch `b` is txid ``b + 1 + base``."""
        return self._ledger.entry.base

    @property
    def next_txid(self) -> int:
        """The batch that is due."""
        return self._ledger.entry.committed + 1

    @property
    def due(self) -> Due:
        """What the attempt that is due is made from."""
        return self._ledger.due

    @property
    def last(self) -> Token | None:
        """The last committed attempt of this log; None before the first."""
        return self._ledger.last

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
        """Run one batch until it is committed and announced; a committed one is skipped.

        The digest is what the source says that the batch covers: a replay's must be equal, and
        `query_id`, Spark's of the streaming query, must stay the same. `failure` is what its first
        attempt has failed with already. A replay has 0 attempts.

        Whatever is raised, the batch is kept; after TakenOverError and LogConflictError another run
        has taken over, and this one has changed nothing since. `NothingNew` is no failure.
        """
        self._check_unused()
        if self._ledger.is_replay(txid, digest, query_id):
            entry, last = self._ledger.entry, self._ledger.last
            assert last is not None
            self._announce(last.txid, lambda: self._states.catch_up(entry))
            work.committed(last)
            return BatchProgress(self.group, last.txid, attempts=0, at=time())
        return self.finish(work, self.due.token, failure, digest=digest, query_id=query_id)

    def finish(
        self,
        work: BatchWork,
        token: Token,
        failure: Exception | None = None,
        *,
        digest: str | None = None,
        query_id: str | None = None,
    ) -> BatchProgress:
        """Run the batch that is due in as many attempts as that takes."""
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
            token, watch = self.due.token, Stopwatch()
            retries.attempts += 1
            try:
                attempt = self.make(work, dead_letter=retries.dead_letter)
                outcome = self.commit(attempt, digest=digest, query_id=query_id)
                break
            except (NothingNew, BatchInterruptedError):
                raise
            except Exception as error:
                if self.is_committed(token):  # what failed came after it
                    raise
                failure = error
        retries.over()
        return self.acknowledge(attempt, outcome, retries.attempts)

    def _wait_after(
        self, token: Token, failure: Exception, watch: Stopwatch, retries: Retries
    ) -> None:
        """Wait after an attempt that has failed; raise where there is not to be another."""
        if not isinstance(failure, BatchInterruptedError):
            self.monitor.attempt_failed(token, failure, watch.elapsed)
        if isinstance(failure, StaleBatchError):
            following = Token(token.txid, token.attempt + 1)
            self.patience.do(partial(self._check_overtaken, following), token.txid)
        retries.wait(token, failure)

    def make(
        self, work: BatchWork, due: Due | None = None, dead_letter: str | None = None
    ) -> Attempt:
        """Plan, emit and compute an attempt, by default the due one; no store or log hears of
        it."""
        return self._making.make(work, due or self._ledger.due, dead_letter)

    def commit(
        self, attempt: Attempt, *, digest: str | None = None, query_id: str | None = None
    ) -> Outcome:
        """Begin what was made, at every state, write it, commit it, and announce it.

        It raises what the attempt failed with. Unless :meth:`is_committed` is true of it by now,
        :meth:`finish` goes on with the batch's next attempt. No later batch may come before.
        """
        try:
            return self._commit(attempt, digest, query_id)
        finally:
            self._states.drop_prepared()

    def _commit(self, attempt: Attempt, digest: str | None, query_id: str | None) -> Outcome:
        self._check_unused()
        computed = attempt.result()
        self._begun = True
        watch = attempt.watch
        watch.go_on()
        ledger, states, work = self._ledger, self._states, attempt.work
        entry = ledger.entry
        token = entry.begun
        outcome, ready, swept = Outcome(), None, False
        begun_states: Iterable[str] = ()
        if computed is not None:
            if isinstance(computed, Computed):  # before any state is written
                self.bad_share.check(token.txid, computed.outcome.counters)
            if attempt.planned is not entry.planned:
                entry = ledger.plan(attempt.planned)
                watch.done("plan")
            reached("before begin", token)
            begun = states.begin(entry, self._making.moment() if self._making.ageing else None)
            if attempt.active:  # what an opaque spout has emitted need not be emitted again
                begun = replace(begun, active=attempt.active)
            reached("after begin", token)
            watch.done("begin")
            reached("before write", token)
            # By one time that is yet to come all would expire, and its own entry never.
            begun = replace(begun, reaches=int(time() * 1000))
            if attempt.dead_letter is None:
                outcome = work.write(begun, computed)
                if isinstance(computed, Postponed):
                    self.bad_share.check(token.txid, outcome.counters)
            begun = replace(begun, reaches=outcome.reached)
            if len(entry.retried) >= MOST_RETRIED and states.can_sweep(entry):
                swept = states.sweep(begun)
            states.sweep_expired(begun, entry, outcome.written)
            reached("after write", token)
            watch.done("run")
            reached("before ready", token)
            ready = states.ready(begun)
            reached("after ready", token)
            watch.done("ready")
            begun_states = states.controls
        work.committing(token)
        reached("before commit", token)
        until = ready.announced().reached if ready else None
        ledger.commit(attempt.metadata, begun_states, digest, query_id, swept, until)
        reached("after commit", token)
        watch.done("commit")
        if ready is not None:
            reached("before announce", token)
            self._announce(token.txid, partial(states.announce, ready))
            reached("after announce", token)
            watch.done("announce")
        self._begun = False
        return outcome

    def acknowledge(self, attempt: Attempt, outcome: Outcome, attempts: int = 1) -> BatchProgress:
        """Tell the sources of a committed attempt; return what was done, in so many attempts."""
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
            counters=users_own(outcome.counters),
            bad_tuples=bad_tuples(outcome.counters),
            dead_letter=attempt.dead_letter,
            at=time(),
        )

    def _check_unused(self) -> None:
        if self._begun:
            raise RuntimeError("this run has failed: a new one begins the batch's next attempt")

    def _take_next_attempt(self) -> None:
        """Take another number, if this one has begun, once every store answers."""
        self._states.look()
        if self._begun:
            self._ledger.take_next_attempt()
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
            self._ledger.check_held()
            return self._states.catch_up(first)

    def _check_overtaken(self, others: Token) -> None:
        """Raise for who has begun an attempt from `others` on: another run, or another copy."""
        self._ledger.check_held()
        for name, control in self._states.controls.items():
            found = control.read()
            own = found is not None and found.log_id == self._ledger.entry.log_id
            if found is not None and own and found.token >= others:
                raise CopiedLogError(name, found.token, self._ledger.entry.committed, control.where)

    def _announce(self, txid: int, tell_states: Callable[[], object]) -> None:
        """Tell the states what is committed, however long they are away: it can't fail now."""
        self.patience.do(tell_states, txid, "the announcement of ")
