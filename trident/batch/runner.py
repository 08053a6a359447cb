"""One batch after the other, exactly once: place, begin, run, ready, commit, announce."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from time import time, time_ns
from types import MappingProxyType
from typing import Any, TypeVar

from trident.batch.adoption import Adopt
from trident.batch.changes import Topology
from trident.batch.errors import BatchFailedError, BatchInterruptedError
from trident.batch.failure_policy import DEFAULT_POLICY, DroppedWork, FailurePolicy
from trident.batch.monitor import Monitor
from trident.batch.opening import opening_entry
from trident.batch.outage import Outage
from trident.batch.outcome import Outcome
from trident.batch.progress import BatchProgress
from trident.batch.states import BatchState, GroupStates
from trident.batch.stopwatch import Stopwatch
from trident.batch.watchpoints import reached
from trident.batch.work import BatchWork, NothingNew
from trident.log.entry import ACTIVE, MOMENT, LogEntry, plans_of_streams
from trident.log.errors import (
    LogMismatchError,
    LogUnavailableError,
    PlacementError,
    ReplayError,
)
from trident.log.log import Log
from trident.log.writer import LogWriter
from trident.plan.nodes import Clock
from trident.states.control import ControlRecord
from trident.states.errors import (
    CopiedLogError,
    FailedException,
    LostWritesError,
    StaleBatchError,
    UnavailableError,
)
from trident.states.values import Token

_logger = logging.getLogger("trident")

T = TypeVar("T")


class BatchRunner:
    """The batches of one group, whatever engine runs them and whatever clock makes them.

    Lives on the driver; used by one thread at a time.

    Parameters
    ----------
    log : Log
        The group's log.
    states : mapping of str to BatchState
        The group's states by name.
    group : str
        The group's id.
    source : str
        How errors name the log of what makes the batches.
    policy : FailurePolicy
        What becomes of a failed batch, and how long one waits for a store that is away.
    stopping : threading.Event
        Set by who stops the run: ends every wait.
    timed : bool
        Whether a step asks for the time of batches: it is then in the log before they run.
    now : callable or None
        Tells that time, in nanoseconds since 1970; by default `time.time_ns`.
    partitioned : bool
        Whether a step asks which partitions of the sources are active.
    monitor : Monitor, optional
        Is told of what happens; nobody by default.

    Raises
    ------
    FailurePolicyError
        When `policy` can't be followed with these states.

    Notes
    -----
    The protocol is section 4 of the design. The only commit point is one exclusive log entry;
    it reserves the next txid's attempt 0 for its writer, so a batch costs one durable write.

    Examples
    --------
    >>> from trident.log.log import MemoryLog
    >>> class Words(BatchWork):
    ...     def run(self, record):
    ...         return Outcome(tuples=2)  # and write every state of the group
    >>> runner = BatchRunner(MemoryLog("words"), {}, group="words")
    >>> runner.open(streams={"words": "word string"})
    >>> runner.run(Words()).txid, runner.run(Words()).txid
    (1, 2)
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
        timed: bool = False,
        now: Callable[[], int] | None = None,
        partitioned: bool = False,
        monitor: Monitor | None = None,
    ) -> None:
        self.group = group
        self.monitor = monitor or Monitor()
        """Is told which attempts fail; the clock tells it of batches that are finished."""
        self.stopping = stopping or threading.Event()
        self._log = log
        self._writer = LogWriter(log)
        self._states = GroupStates(states)
        self.source = source
        self._policy = policy
        self._timed = timed
        self._now = now
        self._partitioned = partitioned
        self._policy.check(self._states)
        self._failed = False

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
    ) -> None:
        """Take the log, and tell every state what it has committed; once, before any batch.

        Waits for nobody: a store that this run has never reached may not be where it is said to be.

        Parameters
        ----------
        streams : mapping of str to str
            The schema of each stream of the group, by its id.
        reads : mapping of str to str
            What each of its streams of files reads, by its id; must stay the same.
        clock : str
            ``"spout"`` or ``"dataframe"``.
        adopt : path, mapping, Adoption, StormState or None
            Whose state a new log takes over; see :func:`adopt_state`. Ignored once that is done.
        accept_loss : mapping of str to int
            Of each state the batch whose loss is accepted; see :meth:`GroupStates.accept`.
        topology : mapping
            What the log keeps of the topology; by default nothing is compared.
        accept_change : mapping of str to str
            What a state or stream may have become; see :func:`check_unchanged`.

        Raises
        ------
        LogError
            When the log can't be read, is another topology's, or is being written by another run.
        OtherLogError, LostStateError, RewoundStateError, LostWritesError, CopiedLogError,
        UnownedStateError
            When a state isn't the one that the log knows.
        StateUnavailableError, LogUnavailableError
            When a store or the log's disk is away.
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
        )
        first = self._states.accept(entry, accept_loss)
        self._writer.begin(first)
        if first.follows_storm or (first.number == 1 and not first.adopted):
            self._states.own(first, self._states.controls)
        self._states.own(first, [name for name, held in first.accepted.items() if held is None])
        try:
            self._catch_up(first)
        except CopiedLogError as error:
            raise replace(error, damage=self._log.damage) from None
        self._states.check_keys(first)
        last = self.last
        self.monitor.started(first.begun, recovered=first.number > 1, committed=last and last.txid)

    @property
    def log_id(self) -> str:
        """The id of the log."""
        return self._entry.log_id

    @property
    def query_id(self) -> str | None:
        """Spark's id of the streaming query; None for spouts and before the first commit."""
        return self._entry.query_id

    @property
    def base(self) -> int:
        """The txid before the log's first: Spark's batch `b` is txid ``b + 1 + base``."""
        return self._entry.base

    @property
    def next_txid(self) -> int:
        """The batch that is due."""
        return self._entry.committed + 1

    @property
    def due(self) -> tuple[Token, Mapping[str, Any], Mapping[str, Any] | None]:
        """The attempt that is due, the metadata that it goes on from, and what is planned of it."""
        return self._entry.begun, self._entry.metadata, self._entry.planned

    @property
    def last(self) -> Token | None:
        """The last committed attempt of this log; None before the first."""
        entry = self._entry
        if entry.committed == entry.base:
            return None
        return Token(entry.committed, entry.retried.get(entry.committed, 0))

    def run(
        self,
        work: BatchWork,
        txid: int | None = None,
        *,
        digest: str | None = None,
        query_id: str | None = None,
    ) -> BatchProgress:
        """Run one batch until it is committed and announced; a committed one is skipped.

        Parameters
        ----------
        work : BatchWork
            The part of the batch that the engine knows.
        txid : int, optional
            Which batch; by default the one that is due.
        digest : str, optional
            What the source says that the batch covers; a replay's must be equal.
        query_id : str, optional
            Spark's id of the streaming query; must stay the same.

        Returns
        -------
        BatchProgress
            What was done; 0 attempts for a replay.

        Raises
        ------
        BatchFailedError
            When every attempt failed; the batch is kept.
        OutageError
            When a store or the log's disk was away for too long; the batch is kept.
        BatchInterruptedError
            When the run was stopped while it waited; the batch is kept.
        TakenOverError, LogConflictError
            When another run has taken over; this one has changed nothing since.
        PlacementError, ReplayError, LogMismatchError
            When the source's log and ours don't fit.
        Exception
            Whatever else the work raised; the batch is kept. `NothingNew` is no failure.
        """
        if self._failed:
            raise RuntimeError("this run has failed: a new one begins the batch's next attempt")
        self._failed = True
        try:
            progress = self._run(work, txid, digest, query_id)
        except NothingNew:
            self._failed = False
            raise
        self._failed = False
        return progress

    def run_once(self, work: BatchWork) -> BatchProgress:
        """Run the attempt that is due, until it is committed and announced, or has failed.

        Raises
        ------
        BaseException
            What the attempt failed with. Where :attr:`next_txid` is still the same it has not
            committed: :meth:`run` goes on with its next attempt, see `FailedAttempt`. No later
            batch may run before.
        """
        if self._failed:
            raise RuntimeError("this run has failed: a new one begins the batch's next attempt")
        token, watch = self._entry.begun, Stopwatch()
        ready, outcome = self._attempt(work, token, watch, None, None)
        self._failed = True
        progress = self._finished(work, token, watch, ready, outcome, attempts=1)
        self._failed = False
        return progress

    def patiently(self, txid: int, do: Callable[[], T], what: str = "") -> T:
        """Do what can't fail, however long a store or the log's disk is away; in any thread.

        Parameters
        ----------
        txid : int
            The batch that it is part of.
        do : callable
            Tried again while it raises a FailedException or LogUnavailableError.
        what : str
            Which part, for logs and errors; by default all of the batch.

        Raises
        ------
        OutageError
            When that was too long; the batch is kept.
        BatchInterruptedError
            When the run was stopped while it waited; the batch is kept.
        """
        outage = None
        while True:
            try:
                done = do()
                break
            except (FailedException, LogUnavailableError) as failure:
                outage = outage or self._outage(txid, what)
                outage.wait(failure)
        if outage is not None:
            outage.over()
        return done

    def _run(
        self, work: BatchWork, txid: int | None, digest: str | None, query_id: str | None
    ) -> BatchProgress:
        entry = self._entry
        if entry.query_id not in (None, query_id):
            raise LogMismatchError(
                self._log.place,
                "streaming query",
                entry.query_id,
                query_id,
                f"{self.source} belongs to another query: restore it, or start with a new "
                "checkpoint and adopt=<this one>.",
            )
        last = self.last
        if last is not None and txid == last.txid:
            if digest != entry.digest:
                raise ReplayError(self._log.place, self.source, txid, entry.digest, digest)
            self._announce(txid, lambda: self._states.catch_up(entry))
            work.committed(last)
            return BatchProgress(self.group, txid, attempts=0, at=time())
        if txid is not None and txid != entry.committed + 1:
            raise PlacementError(self._log.place, entry.committed, self.source, txid)
        return self._run_next(work, digest, query_id)

    def _run_next(self, work: BatchWork, digest: str | None, query_id: str | None) -> BatchProgress:
        token = first = self._entry.begun
        failures = 0
        failed = False
        dead_letter = None
        outage = self._outage(token.txid)
        while True:
            watch = Stopwatch()
            try:
                if failed:
                    # Attempts and what their sources emit are not spent on a store that is away.
                    self._states.look()
                    self.patiently(token.txid, self._writer.next_attempt)
                    failed = False
                    token = self._entry.begun
                try:
                    ready, outcome = self._attempt(work, token, watch, digest, query_id)
                    break
                except (NothingNew, BatchInterruptedError):
                    raise
                except Exception as failure:
                    self.monitor.attempt_failed(token, failure, watch.elapsed)
                    raise
            except StaleBatchError:
                following = Token(token.txid, token.attempt + 1)
                self.patiently(token.txid, partial(self._check_overtaken, following))
                raise
            except UnavailableError as failure:
                failed = True
                outage.wait(failure)
            except FailedException as failure:
                failed = True
                failures += 1
                if dead_letter is not None or failures > self._policy.retries:
                    if dead_letter is not None or self._policy.on_failure == "stop":
                        raise self._given_up(token, failures, failure) from failure
                    dead_letter = str(failure)
                    _logger.error(
                        "batch %d of %s is dead-lettered after %d attempts: %s",
                        *(token.txid, self.group, failures, failure),
                    )
                    work = DroppedWork(work)
                else:
                    _logger.warning(
                        "attempt %d of batch %d of %s failed and is retried: %s",
                        *(token.attempt, token.txid, self.group, failure),
                    )
                    if self.stopping.wait(self._policy.pause(failures)):
                        raise BatchInterruptedError(self.group, token.txid) from failure
        outage.over()
        attempts = token.attempt - first.attempt + 1
        return self._finished(work, token, watch, ready, outcome, attempts, dead_letter)

    def _finished(
        self,
        work: BatchWork,
        token: Token,
        watch: Stopwatch,
        ready: ControlRecord | None,
        outcome: Outcome,
        attempts: int,
        dead_letter: str | None = None,
    ) -> BatchProgress:
        """Announce a batch that is committed."""
        reached("after commit", token)
        watch.done("commit")
        if ready is not None:
            reached("before announce", token)
            self._announce(token.txid, lambda: self._states.announce(ready))
            reached("after announce", token)
            watch.done("announce")
        work.committed(token)
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
            counters=outcome.counters,
            dead_letter=dead_letter,
            at=time(),
        )

    def _attempt(
        self,
        work: BatchWork,
        token: Token,
        watch: Stopwatch,
        digest: str | None,
        query_id: str | None,
    ) -> tuple[ControlRecord | None, Outcome]:
        entry = self._entry
        if entry.planned is None or (self._timed and MOMENT not in entry.planned):
            planned = entry.planned
            if planned is None:
                planned = work.plan(token.txid, entry.metadata)
            if self._timed:
                planned = {**(planned or {}), MOMENT: (self._now or time_ns)() // 1_000_000}
            if planned is not None:
                entry = self._append(planned=planned)
            watch.done("plan")
        planned = entry.planned or {}
        to_run = work.emit(token, entry.metadata, planned)
        watch.done("emit")
        active = {} if ACTIVE in planned or not self._partitioned else {ACTIVE: work.active}
        if to_run and work.emitted_plan:
            planned = {**planned, **work.emitted_plan, **active}
            entry = self._append(planned=planned)
            watch.done("plan")
        ready = None
        outcome = Outcome()
        if to_run:
            reached("before begin", token)
            begun = self._states.begin(entry)
            if active:  # what an opaque spout has emitted need not be emitted again
                begun = replace(begun, active=active[ACTIVE])
            reached("after begin", token)
            watch.done("begin")
            reached("before write", token)
            outcome = work.run(begun)
            reached("after write", token)
            watch.done("run")
            reached("before ready", token)
            ready = self._states.ready(begun)
            reached("after ready", token)
            watch.done("ready")
        work.committing(token)
        reached("before commit", token)
        txid, attempt = token
        begun_states = self._states.controls if to_run else {}
        self._append(
            query_id=query_id,
            states={**entry.states, **dict.fromkeys(begun_states, token)},
            accepted={
                name: held for name, held in entry.accepted.items() if name not in begun_states
            },
            metadata={**entry.metadata, **plans_of_streams(planned), **work.emitted_metadata},
            planned=None,
            begun=Token(txid + 1, 0),
            committed=txid,
            retried={**entry.retried, txid: attempt} if attempt else entry.retried,
            digest=digest,
        )
        return ready, outcome

    def _catch_up(self, first: LogEntry) -> None:
        """Tell every state what is committed, before the first batch."""
        try:
            self._states.catch_up(first)
        except StaleBatchError:
            self._check_overtaken(first.begun)
            raise
        except LostWritesError:
            # The driver before may have been writing the record while it was read.
            self._writer.check_held()
            self._states.catch_up(first)

    def _check_overtaken(self, others: Token) -> None:
        """Raise for who has begun an attempt from `others` on: another run, or another copy."""
        self._writer.check_held()
        for name, control in self._states.controls.items():
            found = control.read()
            own = found is not None and found.log_id == self._entry.log_id
            if found is not None and own and found.token >= others:
                raise CopiedLogError(name, found.token, self._entry.committed, control.where)

    @property
    def _entry(self) -> LogEntry:
        return self._writer.entry

    def _outage(self, txid: int, what: str = "") -> Outage:
        return Outage(self.group, txid, self._policy, self.stopping, what)

    def _append(self, **changes: Any) -> LogEntry:
        """Append to the log, however long its disk is away.

        The attempt goes on afterwards: whether it has committed is not known before this very
        entry is there, or another run's.
        """
        return self.patiently(self._entry.begun.txid, partial(self._writer.append, **changes))

    def _announce(self, txid: int, tell_states: Callable[[], None]) -> None:
        """Tell the states what is committed, however long they are away: it can't fail now."""
        self.patiently(txid, tell_states, "the announcement of ")

    def _given_up(self, token: Token, failures: int, failure: FailedException) -> BatchFailedError:
        text = str(failure) or type(failure).__name__
        advice = "Remove the cause, or allow more with retries="
        if not self._states.inexact:
            advice += ", or go on without it with on_failure='dead-letter'"
        return BatchFailedError(self.group, token.txid, failures, text, f"{advice}.")
