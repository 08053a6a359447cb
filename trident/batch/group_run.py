"""A batch group of a run, whatever makes its batches."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Self

from trident.batch.lag import Lag
from trident.batch.monitor import Monitor
from trident.batch.progress import BatchProgress
from trident.operation_error import OperationError
from trident.states.errors import TridentError
from trident.states.printable import Lines
from trident.states.tracebacks import Briefly, without_frames

_logger = logging.getLogger("trident")
_REMEMBERED = 100


class GroupRun(ABC):
    """A batch group of a run: the base class of the clocks, and what ``run.groups`` holds.

    A clock makes the group's batches: Structured Streaming, or the loop over spouts. It calls
    :meth:`progressed` after each batch and :meth:`ended` once, from its own thread. All other
    methods may be called from any thread. The monitor is that of the group's runner.
    """

    def __init__(self, group: str, monitor: Monitor | None = None) -> None:
        self.group = group
        self.monitor = monitor or Monitor()
        self._progress: deque[BatchProgress] = deque(maxlen=_REMEMBERED)
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self.shown: Callable[[BaseException], BaseException] = lambda failure: failure
        """What the engine makes of a failure before anyone sees it."""

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
        """How far the group's sources are behind, as is known now; None if it is not known.

        Doesn't wait.
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
        """Begin to make batches; called once, by `trident.api.start`."""

    @abstractmethod
    def request_stop(self) -> None:
        """Ask for the end after the batch under way; doesn't wait."""

    @abstractmethod
    def processAllAvailable(self) -> None:
        """Wait until the sources have nothing more; raise what the group failed with."""

    def stop(self) -> None:
        """Let the batch under way finish, then end; waits for it. Never raises its failure.

        A listener of the group can't call it, as the group waits for the listener.
        """
        if self.monitor.calls_listener:
            raise RuntimeError(stop_would_wait(self.group, "listener"))
        self.request_stop()
        self._ended.wait()

    def when_ended(self, listener: Callable[[], None]) -> None:
        """Call `listener` at the end of the group, at once if it has ended."""
        with self._lock:
            if not self._ended.is_set():
                self._listeners.append(listener)
                return
        listener()

    def progressed(self, progress: BatchProgress) -> None:
        """Called by the clock: a batch is finished."""
        self._progress.append(progress)
        self.monitor.finished(progress)

    def ended(self, failure: BaseException | None = None) -> None:
        """Called by the clock, once: no batch will follow."""
        failure = failure and self.shown(failure)
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
    """The text of the error if ``stop()`` is called by what it would wait for."""
    return f"stop() waits for the {caller} that calls it: use run.groups[{group!r}].request_stop()"
