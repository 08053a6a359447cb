"""The handle of a running topology."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from trident.batch.events import Event
from trident.batch.group_run import GroupRun
from trident.batch.listening import Listening
from trident.batch.progress import BatchProgress
from trident.figures.run_figures import group_figures, iso, run_status
from trident.job.plan_dict import to_dict
from trident.page.notebook import LiveDisplay, run_html
from trident.states.errors import TridentError, UsageError
from trident.states.tracebacks import Briefly

if TYPE_CHECKING:
    from trident.drpc.service import LocalDRPC
    from trident.server.server import DRPCServer

_logger = logging.getLogger("trident")

_STOPPED = "the topology has stopped after its batch"


class Run:
    """A running topology; a context manager that stops it.

    Groups are independent: one that fails leaves the others running until :meth:`stop`, as
    streaming queries do; :meth:`awaitTermination` raises at the first failure.
    """

    groups: Mapping[str, GroupRun]
    """The batch groups, by their ids. Each has ``status``, ``lastProgress``, ``recentProgress`` and
    ``exception()`` of its own, and ``request_stop()``, which doesn't wait."""
    drpc: LocalDRPC
    """Answers the topology's queries, in the process and thread that asks."""

    def __init__(
        self,
        groups: Iterable[GroupRun],
        *,
        drpc: Any = None,
        on_spark: bool = False,
        on_end: Callable[[], None] = lambda: None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_end` is called once, by any thread, when no group can run a batch any more;
        `on_close` once, by the first `stop`."""
        self.groups = {group.group: group for group in groups}
        self.drpc = drpc
        self.on_spark = on_spark
        self._on_end = on_end
        self._on_close: Callable[[], None] | None = on_close
        self._servers: list[DRPCServer] = []
        self._since = time.time()
        self._stopped = False
        self._delivered: BaseException | None = None
        self._abandoned = False
        self._changed = threading.Condition()
        self._running = len(self.groups)
        self._finished = threading.Event()
        self._display = LiveDisplay(self._repr_html_, self._finished.wait)
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

        ``docs/monitoring.md`` explains each figure. May be called by any thread, at any time, also
        after the end; it waits for no batch.

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

        It gets a `GroupStarted` for each group, then a `BatchProgress` for each finished batch, an
        `AttemptFailed` for each attempt that failed, and a `GroupEnded`.

        Parameters
        ----------
        callback : callable
            Takes an event. It is called in the thread of the event: with one event of a group after
            the other, and with events of several groups at the same time. Starts and ends from
            before this call come in the thread that calls this, before it returns. The next batch
            waits for the callback, so work that takes long belongs in another thread. So does
            `stop`, which waits for the batch and is refused here; call
            `run.groups[event.group].request_stop()`. An error of the callback is logged and has no
            other effect.

        Returns
        -------
        Listening
            Its ``stop()`` ends the calls; a context manager.

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
        """Return what the first failed group failed with; None if no group has failed."""
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
        """What a notebook shows: the drawing with its figures, and the addresses of the page."""
        drawn = []
        if self.drpc is not None:
            drawn.append(to_dict(self.drpc.plan, on_spark=self.on_spark))
        return run_html(self.figures(), drawn, [server.url for server in self._servers])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The same, and the status of each group where only text can be shown."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _ipython_display_(self) -> None:
        """In a notebook: the same, kept up to date until the run ends."""
        self._display.show()

    def serve(self, host: str = "127.0.0.1", port: int | None = 3774, **options: Any) -> DRPCServer:
        """Answer the topology's queries over HTTP and Thrift, until the run is stopped.

        Parameters
        ----------
        host, port, **options
            Those of `DRPCServer`, which lists the errors as well.

        Returns
        -------
        DRPCServer
            The server, which listens already.
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

        Doesn't raise what a group failed with; :meth:`exception` returns it.
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

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if self._abandoned:
            return
        delivered = self._delivered
        self.stop()
        failure = self.exception()
        # A failure that no caller has seen is raised, also in place of an error that it has caused,
        # such as that of a feed which the failed run gave up.
        replaced = error is None or isinstance(error, TridentError)
        if replaced and failure is not None and delivered is None:
            with Briefly():
                raise failure

    def _raise_failure(self) -> None:
        failure = self.exception()
        if failure is not None:
            raise failure


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C only raise KeyboardInterrupt in the block; PySpark's handler cancels all jobs."""
    found = signal.getsignal(signal.SIGINT)
    of_spark = (getattr(found, "__module__", None) or "").startswith("pyspark.")
    if not of_spark or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, found)


def interrupted() -> KeyboardInterrupt:
    """Return the KeyboardInterrupt to raise once all has stopped; uncaught, it prints no traceback.

    Python ends a program by SIGINT, which a shell shows as status 130, only for KeyboardInterrupt
    itself. So this is no subclass, and is recognized by its text.
    """
    if not isinstance(sys.excepthook, _ExceptInterrupted):
        sys.excepthook = _ExceptInterrupted(sys.excepthook)
    return KeyboardInterrupt(_STOPPED)


class _ExceptInterrupted:
    """Shows every uncaught error as `show` does, except the one of `interrupted`."""

    def __init__(self, show: Any) -> None:
        self._show = show

    def __call__(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, KeyboardInterrupt) or error.args != (_STOPPED,):
            self._show(kind, error, traceback)
