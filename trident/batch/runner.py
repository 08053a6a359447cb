"""One batch after the other, exactly once: place, begin, run, ready, commit, announce."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from trident.batch.adoption import Adopt, adopted_already, new_entry
from trident.batch.errors import BatchFailedError, BatchInterruptedError, FailurePolicyError
from trident.batch.outcome import Outcome
from trident.batch.points import reached
from trident.batch.progress import BatchProgress
from trident.batch.states import BatchState, GroupStates
from trident.batch.steps import Steps
from trident.batch.work import BatchWork
from trident.log.entry import LogEntry, check_metadata
from trident.log.errors import (
    AdoptionError,
    LogConflictError,
    LogMismatchError,
    PlacementError,
    ReplayError,
    TakenOverError,
)
from trident.log.log import Log
from trident.states.control import ControlRecord
from trident.states.errors import FailedException, StaleBatchError
from trident.states.values import Token

OnFailure = Literal["stop", "dead-letter"]
Clock = Literal["spout", "dataframe"]

_LONGEST_WAIT = 10.0
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
        self.writer = f"{os.getpid()}-{secrets.token_hex(4)}"
        self.stopping = stopping or threading.Event()
        self._log = log
        self._states = GroupStates(states)
        self._source = source
        self._retries = retries
        self._on_failure = on_failure
        self._backoff = backoff
        self._own: LogEntry | None = None
        _check_policy(retries, on_failure, self._states)

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
        adopt : path, mapping, Adoption or None
            Whose state a new log takes over; see :func:`new_entry`. Ignored once that is done.

        Raises
        ------
        LogError
            When the log can't be read, is another topology's, or is being written by another run.
        LineageError, LostStateError, RewoundStateError
            When a state isn't the one that the log knows.
        """
        newest = self._log.newest()
        if newest is None:
            first = new_entry(self._log, self.writer, self.group, self._states, adopt)
            first = replace(first, clock=clock, streams=dict(streams))
        else:
            self._check_log(newest, streams, clock, adopt)
            # The reserved attempt is its writer's; whoever comes later takes the next one.
            first = replace(
                newest,
                number=newest.number + 1,
                writer=self.writer,
                begun=Token(newest.committed + 1, newest.begun.attempt + 1),
            )
        self._append(first)
        self._states.catch_up(first)

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

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the last commit stored of the sources, by stream id."""
        return self._entry.metadata

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
                self._look_up()
                raise
            except FailedException as failure:
                failures += 1
                if dead_letter is not None or failures > self._retries:
                    if dead_letter is not None or self._on_failure == "stop":
                        raise self._failed(token, failures, failure) from failure
                    dead_letter = str(failure)
                    _logger.error(
                        "batch %d of %s is dead-lettered after %d attempts: %s",
                        *(token.txid, self.group, failures, failure),
                    )
                    work = _Dropped(work)
                else:
                    self._wait(failures, token.txid)
                self._begin_next_attempt()
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
                entry = replace(entry, number=entry.number + 1, planned=check_metadata(planned))
                self._append(entry)
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
        self._append(
            replace(
                entry,
                number=entry.number + 1,
                query_id=query_id,
                states={**entry.states, **dict.fromkeys(self._states.controls, token)}
                if filled
                else entry.states,
                metadata={
                    **entry.metadata,
                    **planned,
                    **check_metadata(work.emitted_metadata),
                },
                planned=None,
                begun=Token(txid + 1, 0),
                committed=txid,
                exceptions={**entry.exceptions, txid: attempt} if attempt else entry.exceptions,
                digest=digest,
            )
        )
        return begun, outcome

    @property
    def _entry(self) -> LogEntry:
        if self._own is None:
            raise RuntimeError("the batch runner is not open: call open() first")
        return self._own

    def _append(self, entry: LogEntry) -> None:
        try:
            self._log.append(entry)
        except OSError:
            # Whether it is there decides: a commit that is must not be run again.
            newest = self._log.newest()
            if newest is None or (newest.number, newest.writer) != (entry.number, entry.writer):
                raise
        self._own = entry

    def _look_up(self) -> None:
        newest = self._log.newest()
        if newest is None:
            raise LogConflictError(self._log.place, self._entry.number + 1)
        if newest.writer != self.writer:
            raise TakenOverError(self._log.place, self.writer, newest.writer)

    def _begin_next_attempt(self) -> None:
        self._look_up()
        entry = self._entry
        txid, attempt = entry.begun
        self._append(replace(entry, number=entry.number + 1, begun=Token(txid, attempt + 1)))

    def _wait(self, failures: int, txid: int) -> None:
        seconds = min(_LONGEST_WAIT, self._backoff * 2 ** (failures - 1))
        if self.stopping.wait(seconds):
            raise BatchInterruptedError(self.group, txid)

    def _patiently(self, tell_states: Callable[[], None]) -> None:
        """Repeat what follows a commit while a store is away: the batch itself can't fail now."""
        failures = 0
        while True:
            try:
                return tell_states()
            except FailedException:
                failures += 1
                if failures > self._retries:
                    raise
                if self.stopping.wait(min(_LONGEST_WAIT, self._backoff * 2 ** (failures - 1))):
                    raise

    def _failed(self, token: Token, failures: int, failure: FailedException) -> BatchFailedError:
        text = str(failure) or type(failure).__name__
        advice = "Remove the cause, or allow more with retries="
        if not self._states.inexact:
            advice += ", or go on without it with on_failure='dead-letter'"
        return BatchFailedError(self.group, token.txid, failures, text, f"{advice}.")

    def _check_log(
        self, newest: LogEntry, streams: Mapping[str, str], clock: Clock, adopt: Adopt | None
    ) -> None:
        place = self._log.place
        if newest.successor is not None:
            raise adopted_already(self._log, newest.successor[1])
        if adopt is not None and not newest.adopted:
            raise AdoptionError(
                place,
                f"it has a state of its own, {newest.committed} batches are committed",
                "Only a new checkpoint can adopt: leave adopt= out, or give a new checkpoint.",
            )
        if newest.clock != clock:
            raise LogMismatchError(
                place,
                "kind of source",
                newest.clock,
                clock,
                "A group of spouts and one with a streaming DataFrame can't share a log: start "
                "with a new checkpoint and adopt=<this one>.",
            )
        if dict(newest.streams) != dict(streams):
            raise LogMismatchError(
                place,
                "set of streams or schemas",
                newest.streams,
                streams,
                "Give the streams their old ids and schemas, or start with a new checkpoint and "
                "adopt=<this one>.",
            )


class _Dropped(BatchWork):
    """A batch given up: taken from its sources and acknowledged, but not run."""

    def __init__(self, work: BatchWork) -> None:
        self._work = work

    def emit(self, token: Token, metadata: Mapping[str, Any]) -> bool:
        filled = self._work.emit(token, metadata)
        self.emitted_metadata = self._work.emitted_metadata
        return filled

    def run(self, record: ControlRecord) -> Outcome:
        return Outcome()

    def committed(self, token: Token) -> None:
        self._work.committed(token)


def _check_policy(retries: int, on_failure: str, states: GroupStates) -> None:
    if retries < 0:
        raise FailurePolicyError(f"retries is {retries}", "Give 0 or more.")
    if on_failure not in get_args(OnFailure):
        raise FailurePolicyError(
            f"on_failure is {on_failure!r}", "Allowed are 'stop' and 'dead-letter'."
        )
    if on_failure == "dead-letter" and states.inexact:
        raise FailurePolicyError(
            f"on_failure is 'dead-letter', but {', '.join(states.inexact)} is no opaque map",
            "What a given-up batch has written can be undone in opaque maps only: make it "
            "opaque, or use on_failure='stop'.",
        )
