"""The handle of a running topology."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from trident.batch.progress import BatchProgress
from trident.figures.events import Event
from trident.figures.group_monitor import GroupMonitor
from trident.figures.lag import Lag
from trident.figures.listening import Listening
from trident.figures.run_figures import group_figures, run_status
from trident.figures.times import iso
from trident.keyboard_interrupt import interrupted, interruptible
from trident.operation_error import OperationError
from trident.page.live_display import LiveDisplay
from trident.plan.plan_dict import to_dict
from trident.states.errors import TridentError, UsageError
from trident.states.printable import Lines
from trident.states.tracebacks import Briefly, without_frames

if TYPE_CHECKING:
    from trident.drpc.service import LocalDRPC
    from trident.server.server import DRPCServer

_logger = logging.getLogger("trident")
_REMEMBERED = 100


class GroupRun(ABC):
    """A batch group of a run: the base class of the clocks, and what ``run.groups`` holds.

    A clock makes the group's batches: Structured Streaming, or the loop over spouts. It calls
    :meth:`progressed` after each batch and :meth:`ended` once, from its own thread. All other
    methods may be called from any thread.

    Parameters
    ----------
    group : str
        The group's id: its smallest stream id.
    monitor : GroupMonitor, optional
        Is told of finished batches and of the end: that of the group's runner.
    """

    def __init__(self, group: str, monitor: GroupMonitor | None = None) -> None:
        self.group = group
        self.monitor = monitor or GroupMonitor(group)
        self._progress: deque[BatchProgress] = deque(maxlen=_REMEMBERED)
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @property
    def isActive(self) -> bool:
        """Whether the group may still run batches."""
        return not self._ended.is_set()

    @property
    def status(self) -> str:
        """``"running"``, ``"stopped"`` or ``"failed"``."""
        if self.isActive:
            return "running"
        return "failed" if self._failure else "stopped"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.group!r}, {self.status!r})"

    @property
    def lastProgress(self) -> BatchProgress | None:
        """The last finished batch; None before the first."""
        return self._progress[-1] if self._progress else None

    @property
    def recentProgress(self) -> list[BatchProgress]:
        """The last 100 finished batches, the oldest first."""
        return list(self._progress)

    def lag(self) -> Lag | None:
        """How far the group's sources are behind, as it is known now; None where nobody knows.

        Waits for nobody.
        """
        return None

    def exception(self) -> BaseException | None:
        """Return what the group failed with, None while it runs or after a normal end."""
        return self._failure if self._ended.is_set() else None

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end of the group, `timeout` seconds at most; raise what it failed with.

        Returns whether it has ended.
        """
        done = self._ended.wait(timeout)
        with Briefly():
            self._raise_failure()
        return done

    @abstractmethod
    def start(self) -> Self:
        """Begin to make batches; called once, by `trident.start`."""

    @abstractmethod
    def request_stop(self) -> None:
        """Ask for the end after the batch under way; doesn't wait."""

    @abstractmethod
    def processAllAvailable(self) -> None:
        """Wait until the sources have nothing more; raise what the group failed with."""

    def stop(self) -> None:
        """Let the batch under way finish, then end; waits for it. Never raises its failure.

        Raises
        ------
        RuntimeError
            Where a listener of the group calls it, whom the group waits for.
        """
        if self.monitor.told_here:
            raise RuntimeError(stop_would_wait(self.group, "listener"))
        self.request_stop()
        self._ended.wait()

    def when_ended(self, listener: Callable[[], None]) -> None:
        """Call `listener` at the end of the group, at once where it has ended."""
        with self._lock:
            if not self._ended.is_set():
                self._listeners.append(listener)
                return
        listener()

    def progressed(self, progress: BatchProgress) -> None:
        """Called by the clock: a batch is finished."""
        self._progress.append(progress)
        self.monitor.figures.add(progress)
        self.monitor.finished(progress)

    def ended(self, failure: BaseException | None = None) -> None:
        """Called by the clock, once: no batch will follow."""
        self.monitor.ended(failure)
        if isinstance(failure, OperationError):
            details = Lines(failure.details)
            _logger.debug("%s stopped by a user's exception:\n%s", self.group, details)
        elif isinstance(failure, TridentError):
            _logger.debug("%s stopped", self.group, exc_info=failure)
        if isinstance(failure, TridentError):
            failure = without_frames(failure)
        with self._lock:
            self._failure = failure
            self._ended.set()
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()

    def _raise_failure(self) -> None:
        failure = self.exception()
        if failure is not None:
            raise failure


def stop_would_wait(group: str, caller: str) -> str:
    """What is told where ``stop()`` is called by what it would wait for."""
    return f"stop() waits for the {caller} that calls it: use run.groups[{group!r}].request_stop()"


class Run:
    """A running topology; a context manager that stops it.

    Parameters
    ----------
    groups : iterable of GroupRun
        The groups, already started.
    drpc : LocalDRPC
        What answers :attr:`drpc`.
    on_end : callable
        Called once, by any thread, when no group can run a batch any more: releases the
        checkpoint.
    on_close : callable
        Called once by the first :meth:`stop`: releases what queries use.

    Notes
    -----
    Groups are independent: one that fails leaves the others running until :meth:`stop`, as
    streaming queries do; :meth:`awaitTermination` raises at the first failure.
    """

    drpc: LocalDRPC
    """Answers the topology's queries, in the process and thread that asks."""

    def __init__(
        self,
        groups: Iterable[GroupRun],
        *,
        drpc: Any = None,
        on_end: Callable[[], None] = lambda: None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.groups: Mapping[str, GroupRun] = {group.group: group for group in groups}
        self.drpc = drpc
        self._on_end = on_end
        self._on_close: Callable[[], None] | None = on_close
        self._servers: list[DRPCServer] = []
        self._since = time.time()
        self._stopped = False
        self._delivered: BaseException | None = None
        self._abandoned = False
        self._display = LiveDisplay(self._repr_html_, self._finished_within)
        self._changed = threading.Condition()
        self._running = len(self.groups)
        self._finished = threading.Event()
        if not self.groups:
            self._finish()
        for group in self.groups.values():
            group.when_ended(self._group_ended)

    def _group_ended(self) -> None:
        with self._changed:
            self._running -= 1
            last = self._running == 0
        if last:
            self._finish()
        with self._changed:
            self._changed.notify_all()

    def _finish(self) -> None:
        try:
            self._on_end()
        finally:
            self._finished.set()

    @property
    def isActive(self) -> bool:
        """Whether any group may still run batches."""
        return any(group.isActive for group in self.groups.values())

    @property
    def status(self) -> Mapping[str, str]:
        """The status of each group, by its id."""
        return {group.group: group.status for group in self.groups.values()}

    @property
    def lastProgress(self) -> BatchProgress | None:
        """The last finished batch of the first group that has one; see :attr:`groups`."""
        progress = (group.lastProgress for group in self.groups.values())
        return next((found for found in progress if found is not None), None)

    @property
    def recentProgress(self) -> list[BatchProgress]:
        """The last 100 finished batches of each group, the oldest first."""
        found = [done for group in self.groups.values() for done in group.recentProgress]
        return sorted(found, key=lambda done: done.at)

    def figures(self) -> dict[str, Any]:
        """Return what the run has done since its start, as JSON values.

        What each figure means is told in ``docs/monitoring.md``. May be called by any thread, at
        any time, also after the end; it waits for no batch.

        Examples
        --------
        >>> from trident import Count, FixedBatchSpout, MemoryMapState, TridentTopology
        >>> topology = TridentTopology()
        >>> _ = (topology.newStream("words", FixedBatchSpout("word", 2, ["cat"], ["the"], ["cat"]))
        ...     .groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count"))
        >>> with topology.start(trigger="available") as run:
        ...     _ = run.awaitTermination()
        >>> [group] = run.figures()["groups"]
        >>> group["group"], group["txid"], group["tuples"], group["keys_written"], group["failures"]
        ('words', 2, 3, 3, {})
        """
        return {
            "status": run_status(self.status.values(), self._stopped),
            "since": iso(self._since),
            "groups": [group_figures(group) for group in self.groups.values()],
            "queries": self.drpc.figures() if self.drpc is not None else [],
        }

    def listen(self, callback: Callable[[Event], object]) -> Listening:
        """Have `callback` called with what happens, as a ``StreamingQueryListener`` of Spark is.

        With a `GroupStarted` for each group, then a `BatchProgress` for each finished batch, an
        `AttemptFailed` for each attempt that failed, and a `GroupEnded`.

        Parameters
        ----------
        callback : callable
            Takes an event. It is called in the thread where that happens, with one event of a
            group after the other, of several groups at the same time; with the starts, and ends
            that have been already, in the thread that calls this, before it returns. The next batch
            waits for it, so work that takes long belongs in another thread; so does `stop`, which
            waits for the batch and is refused here: `run.groups[event.group].request_stop()` isn't.
            What it raises is logged and hurts nobody.

        Returns
        -------
        Listening
            Whose ``stop()`` ends it; a context manager.

        Examples
        --------
        >>> from trident import BatchProgress, FeederBatchSpout, TridentTopology
        >>> def listener(event):
        ...     match event:
        ...         case BatchProgress(txid=txid, tuples=tuples):
        ...             print(f"batch {txid} with {tuples} tuples")
        >>> topology, words = TridentTopology(), FeederBatchSpout("word")
        >>> _ = topology.newStream("words", words).peek(lambda word: None)
        >>> with topology.start() as run:
        ...     listening = run.listen(listener)
        ...     words.feed([["cat"], ["the"]])
        batch 1 with 2 tuples
        """
        listening = Listening(callback)
        for group in self.groups.values():
            group.monitor.listen(listening)
        return listening

    def exception(self) -> BaseException | None:
        """Return what the first failed group failed with, None where none has."""
        failures = (group.exception() for group in self.groups.values())
        self._delivered = next((found for found in failures if found is not None), None)
        return self._delivered

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait until all groups have ended or one has failed, `timeout` seconds at most.

        Ctrl-C meanwhile stops the run as :meth:`stop` does, after the batch under way, and then
        raises `KeyboardInterrupt`; uncaught, it ends the program without a traceback, with the
        status 130 that shells show for Ctrl-C. A second Ctrl-C doesn't wait for the batch: the
        next start tries it again.

        Returns
        -------
        bool
            Whether all groups have ended.

        Raises
        ------
        BaseException
            What the first failed group failed with.
        KeyboardInterrupt
            After Ctrl-C, when everything has stopped.
        """
        with interruptible():
            try:
                self._wait(timeout)
            except KeyboardInterrupt:
                self._abandoned = True  # stays so where a second Ctrl-C ends stop()
                self.stop()
                self._abandoned = False
                self._raise_failure()
                raise interrupted() from None
        with Briefly():
            self._raise_failure()
        return self._finished.is_set()

    def _wait(self, timeout: float | None) -> None:
        """Wait for the end, the first failure, or the timeout."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._changed:
                if self._finished.is_set() or self.exception() is not None:
                    return
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    return
                self._changed.wait(remaining)

    def _finished_within(self, seconds: float) -> bool:
        return self._finished.wait(seconds)

    def processAllAvailable(self) -> None:
        """Wait until the sources of all groups have nothing more; raise the first failure.

        Never returns for a source that never ends.
        """
        for group in self.groups.values():
            try:
                with Briefly():
                    group.processAllAvailable()
            except BaseException as failure:
                self._delivered = failure
                raise

    def __repr__(self) -> str:
        return f"Run({dict(self.status)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the drawing with its figures, and where the page is."""
        from trident.page.notebook import run_html

        drawn = [to_dict(self.drpc.plan)] if self.drpc is not None else []
        return run_html(self.figures(), drawn, [server.url for server in self._servers])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The same, and the status of each group for who shows text only."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _ipython_display_(self) -> None:
        """In a notebook: the same, kept up to date until the run ends."""
        self._display.show()

    def serve(self, host: str = "127.0.0.1", port: int | None = 3774, **options: Any) -> DRPCServer:
        """Answer the topology's queries over HTTP and Thrift, until the run is stopped.

        Parameters
        ----------
        host, port, **options
            Those of `DRPCServer`, which tells what is raised as well.

        Returns
        -------
        DRPCServer
            Which listens already.
        """
        from trident.server.server import DRPCServer  # its packages are optional

        if self._stopped:
            raise UsageError("serve: the run has been stopped; nobody would stop the server")
        with Briefly():
            server = DRPCServer(self, host, port, **options).start()
        self._servers.append(server)
        return server

    def stop(self) -> None:
        """Let the batches under way finish, then end and release everything; may be repeated.

        Doesn't raise what a group failed with; :meth:`exception` tells it.
        """
        for group in self.groups.values():
            group.request_stop()
        for group in self.groups.values():
            group.stop()
        self._finished.wait()
        self._stopped = True
        while self._servers:
            self._servers.pop().stop()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._abandoned:
            return
        delivered = self._delivered
        self.stop()
        failure = self.exception()
        # A failure that nobody has seen is raised, also in place of an error that it has caused,
        # such as that of a feed which the failed run gave up.
        replaced = error is None or isinstance(error, TridentError)
        if replaced and failure is not None and delivered is None:
            with Briefly():
                raise failure

    def _raise_failure(self) -> None:
        failure = self.exception()
        if failure is not None:
            raise failure
