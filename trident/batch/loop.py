"""The clock of a group of spouts: a thread that runs a batch whenever one is ready."""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from time import monotonic
from typing import Any, Self

from trident.batch.errors import BatchInterruptedError
from trident.batch.group_run import GroupRun, stop_would_wait
from trident.batch.lag import Lag
from trident.batch.pending import PendingBatches
from trident.batch.runner import BatchRunner
from trident.batch.spout_work import SpoutWork
from trident.batch.start_options import Trigger
from trident.batch.work import GroupEngine
from trident.sources.source import Opening, StreamSource
from trident.sources.spout_sources import open_source
from trident.spouts.interfaces import ITridentDataSource

_SHORTEST_POLL = 0.001
_LONGEST_POLL = 0.25
_LATER = 0.01
"""Seconds by which a batch for quiet sources is later, as another clock gives its time."""


class SpoutLoop(GroupRun):
    """Runs the batches of a group of spouts.

    A batch is due when any spout is ready. The sources are at their end when every spout says that
    it is not ready. An idle loop sleeps until a spout, :meth:`processAllAvailable` or :meth:`stop`
    wakes it. A spout that can't notify and has nothing, or says it is ready and emits nothing, is
    asked again after 1 ms, then ever later, up to 0.25 s.
    """

    def __init__(
        self,
        spouts: Mapping[str, ITridentDataSource],
        engine: GroupEngine,
        runner: BatchRunner,
        *,
        trigger: Trigger = None,
        conf: Mapping[str, Any] | None = None,
        max_pending: int = 1,
        idle_times: Sequence[float] = (),
    ) -> None:
        super().__init__(runner.group, runner.monitor)
        self._spouts = spouts
        self._engine = engine
        self._runner = runner
        self._until_done = trigger == "available"
        self._interval = trigger if isinstance(trigger, int | float) else 0.0
        self._conf = conf or {}
        self._max_pending = max_pending
        self._idle_times = idle_times
        self._sources: Sequence[StreamSource] = ()
        self._changed = threading.Condition()
        self._news = False
        self._waiters = 0
        """How many calls have asked for all that is available, so far."""
        self._answered = 0
        """How many of them have been answered."""
        self._thread = threading.Thread(
            target=self._run, name=f"trident-{runner.group}", daemon=True
        )

    def start(self) -> Self:
        self._thread.start()
        return self

    def request_stop(self) -> None:
        self._runner.stopping.set()
        self._wake()

    def stop(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError(stop_would_wait(self.group, "batch"))
        super().stop()
        self._thread.join()

    def lag(self) -> Lag | None:
        txid = self._runner.next_txid
        return Lag.of(
            {source.stream: source.lag(txid) for source in self._sources},
            {source.stream: source.held_back() for source in self._sources},
        )

    def processAllAvailable(self) -> None:
        """Wait until every spout has said that it has nothing more.

        Doesn't wait for the trigger. Never returns for a spout that never ends. Raises what the
        group failed with.
        """
        with self._changed:
            self._waiters += 1
            own = self._waiters
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._answered >= own or not self.isActive)
        self._raise_failure()

    def _wake(self) -> None:
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            with ExitStack() as closing:
                closing.callback(self._engine.close)
                sources = []
                run = secrets.token_hex(8)
                for stream, spout in self._spouts.items():
                    opening = Opening(stream, self._conf, self._wake, self._engine, run)
                    source = open_source(opening, spout)
                    closing.callback(source.close)
                    sources.append(source)
                self._sources = sources
                work = SpoutWork(sources, self._engine)
                pending = PendingBatches(work, self._runner, self._max_pending, self.progressed)
                failure = _failure_of(lambda: self._loop(sources, work, pending))
                at_end = _failure_of(pending.close)
                failure = failure or at_end
        except BaseException as error:
            failure = failure or error
        self._sources = ()
        self.ended(failure)
        self._wake()

    def _loop(self, sources: list[StreamSource], work: SpoutWork, pending: PendingBatches) -> None:
        runner = self._runner
        if (last := runner.ledger.last) is not None:
            work.committed(last)  # a crash may have come between commit and success
        notifying = [source for source in sources if source.notifies]
        polls = len(notifying) < len(sources)
        poll = _SHORTEST_POLL
        due = monotonic()
        idle = IdleTimes(self._idle_times)
        while not runner.stopping.is_set():
            with self._changed:
                self._news = False
                waiters = self._waiters
            if any(source.is_ready(pending.next_txid) for source in sources) or idle.is_due():
                if due > monotonic() and pending.settle():
                    continue  # they are acknowledged before the pause, not after it
                if not self._wait_until(due):
                    return
                due = max(due + self._interval, monotonic())
                pending.run()
                if work.filled:
                    idle.begin()
                # A spout that notifies knows better than an empty batch whether it has more.
                following = pending.next_txid
                if work.filled or not all(s.has_nothing(following) for s in notifying):
                    poll = _SHORTEST_POLL
                    continue
                pending.settle()
            elif pending.settle():
                continue
            done = all(source.has_nothing(runner.next_txid) for source in sources)
            if done and self._until_done:
                return
            with self._changed:
                if done:
                    self._answered = waiters
                    self._changed.notify_all()
                waits = [each for each in (poll if polls else None, idle.wait) if each is not None]
                self._changed.wait_for(partial(self._is_woken, waiters), min(waits, default=None))
            poll = min(2 * poll, _LONGEST_POLL)

    def _is_woken(self, waiters: int) -> bool:
        """Whether there is news, or more calls wait than when the spouts were asked."""
        return self._news or self._waiters > waiters

    def _wait_until(self, due: float) -> bool:
        """Wait until `due`, or until a call asks for all; return False to stop instead."""
        seconds = due - monotonic()
        if seconds > 0:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._waiters > self._answered or self._runner.stopping.is_set(),
                    seconds,
                )
        return not self._runner.stopping.is_set()


def _failure_of(run: Callable[[], None]) -> BaseException | None:
    """Run it; return what it raised, unless that is only the requested stop."""
    try:
        run()
    except BatchInterruptedError:
        pass  # the batch is kept
    except BaseException as error:
        return error
    return None


class IdleTimes:
    """The times after the last tuples at which a batch is due, so that windows notice quiet
    sources."""

    def __init__(self, seconds: Iterable[float]) -> None:
        self._seconds = sorted(set(seconds))
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        now = monotonic() + _LATER
        self._due = deque(now + seconds for seconds in self._seconds)

    def is_due(self) -> bool:
        """Return whether a batch is due, once for each."""
        if not self._due or monotonic() < self._due[0]:
            return False
        self._due.popleft()
        return True

    @property
    def wait(self) -> float | None:
        """Seconds until one is due; None if none will be."""
        return max(0.0, self._due[0] - monotonic()) if self._due else None
