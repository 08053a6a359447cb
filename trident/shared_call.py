"""A call that may hang, made once for all who ask for it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedCall(Generic[T]):
    """Calls a function in a thread of its own, never twice at the same time.

    So any number of requests costs one thread at most, even if the call never returns. For `fresh`
    seconds the outcome is the answer to later requests too.
    """

    def __init__(self, call: Callable[[], T], fresh: float) -> None:
        self._call = call
        self._fresh = fresh
        self._lock = Lock()
        self._future: Future[T] | None = None
        self._began = self._ended = 0.0

    @property
    def under_way(self) -> float:
        """For how many seconds the call has been running; 0 if it isn't."""
        with self._lock:
            running = self._future is not None and not self._future.done()
            return monotonic() - self._began if running else 0.0

    def ask(self) -> Future[T]:
        """Return the future of the outcome; begin the call if no recent outcome is known."""
        with self._lock:
            future = self._future
            if future is not None and (not future.done() or self._is_fresh()):
                return future
            future = self._future = Future()
            future.set_running_or_notify_cancel()  # a waiter must not cancel it for others
            self._began = monotonic()
        Thread(target=self._run, args=(future,), name="trident-asks", daemon=True).start()
        return future

    async def within(self, seconds: float) -> T:
        """Return the outcome, without blocking the event loop.

        Raises TimeoutError if there is none after `seconds`, and at once if the call has been
        running for longer: otherwise each request would wait as long for a call that hangs.
        """
        if self.under_way < seconds:
            waiting = asyncio.wrap_future(self.ask())
            # Otherwise asyncio would log the error of a call that nobody waited for.
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
            if (await asyncio.wait([waiting], timeout=seconds))[0]:
                return waiting.result()
        raise TimeoutError(f"no answer within {seconds:g} s")

    def _is_fresh(self) -> bool:
        return monotonic() - self._ended < self._fresh

    def _run(self, future: Future[T]) -> None:
        try:
            outcome = self._call()
        except BaseException as error:
            self._ended = monotonic()
            future.set_exception(error)
        else:
            self._ended = monotonic()
            future.set_result(outcome)
