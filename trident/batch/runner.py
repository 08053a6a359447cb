"""One batch after the other, exactly once: place, begin, run, ready, commit, announce."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from trident.batch.adoption import Adopt
from trident.batch.errors import BatchFailedError, BatchInterruptedError
from trident.batch.failures import DroppedWork, FailurePolicy, OnFailure
from trident.batch.opening import Clock, opening_entry
from trident.batch.outcome import Outcome
from trident.batch.points import reached
from trident.batch.progress import BatchProgress
from trident.batch.states import BatchState, GroupStates
from trident.batch.steps import Steps
from trident.batch.work import BatchWork
from trident.log.entry import LogEntry, check_metadata
from trident.log.errors import LogMismatchError, PlacementError, ReplayError
from trident.log.log import Log
from trident.log.writer import LogWriter
from trident.states.control import ControlRecord
from trident.states.errors import FailedException, StaleBatchError
from trident.states.values import Token

_logger = logging.getLogger("trident")


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
    retries : int
        How often a failed batch is tried again before ``on_failure`` decides.
    on_failure : str
        ``"stop"`` keeps the batch for the next start; ``"dead-letter"`` commits it without
        updating any state and goes on, for opaque maps only.
    backoff : float
        Seconds before the first retry; doubled for each further one, 10 at most.
    stopping : threading.Event
        Set by who stops the run: ends the wait for a retry.

    Raises
    ------
    FailurePolicyError
        When `retries` or `on_failure` can't be, or not with these states.

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
        retries: int = 3,
        on_failure: OnFailure = "stop",
        backoff: float = 0.1,
        stopping: threading.Event | None = None,
    ) -> None:
        self.group = group
        self.stopping = stopping or threading.Event()
        self._log = log
        self._writer = LogWriter(log)
        self._states = GroupStates(states)
        self._source = source
        self._policy = FailurePolicy(retries, on_failure, backoff)
        self._policy.check(self._states)
        self._failed = False

    def open(
        self, *, streams: Mapping[str, str], clock: Clock = "spout", adopt: Adopt | None = None
    ) -> None:
        """Take the log, and tell every state what it has committed; once, before any batch.

        Parameters
        ----------
        streams : mapping of str to str
            The schema of each stream of the group, by its id.
        clock : str
            ``"spout"`` or ``"dataframe"``.
        adopt : path, mapping, Adoption, StormState or None
            Whose state a new log takes over; see :func:`adopt_state`. Ignored once that is done.

        Raises
        ------
        LogError
            When the log can't be read, is another topology's, or is being written by another run.
        LineageError, LostStateError, RewoundStateError
            When a state isn't the one that the log knows.
        """
        first = opening_entry(
            self._log, self.group, self._states, streams=streams, clock=clock, adopt=adopt
        )
        self._writer.begin(first)
        self._states.catch_up(first)
        if first.committed == first.base > 0 and not first.adopted:
            self._states.own(first)

    @property
    def base(self) -> int:
        """The txid before the log's first: Spark's batch `b` is txid ``b + 1 + base``."""
        return self._entry.base

    @property
    def next_txid(self) -> int:
        """The batch that is due."""
        return self._entry.committed + 1

    @property
    def last(self) -> Token | None:
        """The last committed attempt of this log; None before the first."""
        entry = self._entry
        if entry.committed == entry.base:
            return None
        return Token(entry.committed, entry.exceptions.get(entry.committed, 0))

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
        BatchInterruptedError
            When the run was stopped while it waited for a retry; the batch is kept.
        TakenOverError, LogConflictError
            When another run has taken over; this one has changed nothing since.
        PlacementError, ReplayError, LogMismatchError
            When the source's log and ours don't fit.
        Exception
            Whatever else the work raised; the batch is kept.
        """
        if self._failed:
            raise RuntimeError("this run has failed: a new one begins the batch's next attempt")
        self._failed = True
        progress = self._run(work, txid, digest, query_id)
        self._failed = False
        return progress

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
                f"{self._source} belongs to another query: restore it, or start with a new "
                "checkpoint and adopt=<this one>.",
            )
        last = self.last
        if last is not None and txid == last.txid:
            if digest != entry.digest:
                raise ReplayError(self._log.place, self._source, txid, entry.digest, digest)
            self._patiently(lambda: self._states.catch_up(entry))
            work.committed(last)
            return BatchProgress(self.group, txid, attempts=0)
        if txid is not None and txid != entry.committed + 1:
            raise PlacementError(self._log.place, entry.committed, self._source, txid)
        return self._run_next(work, digest, query_id)

    def _run_next(self, work: BatchWork, digest: str | None, query_id: str | None) -> BatchProgress:
        failures = 0
        dead_letter = None
        while True:
            token = self._entry.begun
            steps = Steps()
            try:
                begun, outcome = self._attempt(work, token, steps, digest, query_id)
                break
            except StaleBatchError:
                self._writer.check_held()
                raise
            except FailedException as failure:
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
                self._writer.next_attempt()
        reached("after commit", token)
        steps.done("commit")
        if begun is not None:
            reached("before announce", token)
            self._patiently(lambda: self._states.announce(begun))
            reached("after announce", token)
            steps.done("announce")
        work.committed(token)
        steps.done("acknowledge")
        return BatchProgress(
            self.group,
            token.txid,
            attempts=failures + 1,
            tuples=outcome.tuples,
            keys_read=outcome.read,
            keys_written=outcome.written,
            cache_hits=outcome.cache_hits,
            seconds={**steps.seconds, **outcome.seconds},
            dead_letter=dead_letter,
        )

    def _attempt(
        self,
        work: BatchWork,
        token: Token,
        steps: Steps,
        digest: str | None,
        query_id: str | None,
    ) -> tuple[ControlRecord | None, Outcome]:
        entry = self._entry
        if entry.planned is None:
            planned = work.plan(token.txid, entry.metadata)
            if planned is not None:
                entry = self._writer.append(planned=check_metadata(planned))
            steps.done("plan")
        planned = entry.planned or {}
        filled = work.emit(token, {**entry.metadata, **planned})
        steps.done("emit")
        begun = None
        outcome = Outcome()
        if filled:
            begun = ControlRecord(entry.lineage, token, entry.committed, entry.exceptions)
            reached("before begin", token)
            self._states.begin(begun, entry)
            reached("after begin", token)
            steps.done("begin")
            reached("before write", token)
            outcome = work.run(begun)
            reached("after write", token)
            steps.done("run")
            reached("before ready", token)
            self._states.ready(begun)
            reached("after ready", token)
            steps.done("ready")
        reached("before commit", token)
        txid, attempt = token
        self._writer.append(
            query_id=query_id,
            states={**entry.states, **dict.fromkeys(self._states.controls, token)}
            if filled
            else entry.states,
            metadata={**entry.metadata, **planned, **check_metadata(work.emitted_metadata)},
            planned=None,
            begun=Token(txid + 1, 0),
            committed=txid,
            exceptions={**entry.exceptions, txid: attempt} if attempt else entry.exceptions,
            digest=digest,
        )
        return begun, outcome

    @property
    def _entry(self) -> LogEntry:
        return self._writer.entry

    def _patiently(self, tell_states: Callable[[], None]) -> None:
        """Repeat what follows a commit while a store is away: the batch itself can't fail now."""
        failures = 0
        while True:
            try:
                return tell_states()
            except FailedException as failure:
                failures += 1
                if failures > self._policy.retries:
                    raise
                _logger.warning(
                    "a state of %s is told again what is committed: %s", self.group, failure
                )
                if self.stopping.wait(self._policy.pause(failures)):
                    raise

    def _given_up(self, token: Token, failures: int, failure: FailedException) -> BatchFailedError:
        text = str(failure) or type(failure).__name__
        advice = "Remove the cause, or allow more with retries="
        if not self._states.inexact:
            advice += ", or go on without it with on_failure='dead-letter'"
        return BatchFailedError(self.group, token.txid, failures, text, f"{advice}.")
