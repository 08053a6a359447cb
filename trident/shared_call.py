"""A call that several ask for at once and that may hang: made once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedCall(Generic[T]):
    """Calls something in a thread of its own, never twice at the same time.

    So whoever asks, however often, costs one thread at most, also where the call never returns.

    Its outcome is handed for `fresh` seconds to those who ask later.
    """

    def __init__(self, call: Callable[[], T], fresh: float) -> None:
        self._call = call
        self._fresh = fresh
        self._lock = Lock()
        self._future: Future[T] | None = None
        self._began = self._ended = 0.0

    @property
    def under_way(self) -> float:
        """For how many seconds the call has been running; 0 where it isn't."""
        with self._lock:
            running = self._future is not None and not self._future.done()
            return monotonic() - self._began if running else 0.0

    def ask(self) -> Future[T]:
        """Return what has the outcome, or will have it; begins the call where that is due."""
        with self._lock:
            future = self._future
            if future is not None and (not future.done() or self._is_fresh()):
                return future
            future = self._future = Future()
            future.set_running_or_notify_cancel()  # one who waits no more ends it for nobody
            self._began = monotonic()
        Thread(target=self._run, args=(future,), name="trident-asks", daemon=True).start()
        return future

    async def within(self, seconds: float) -> T:
        """Return the outcome, without blocking the event loop.

        Raises TimeoutError where there is none in so many seconds. One that has been waited for as
        long is not waited for again: else each who waits would be kept until it ends.
        """
        if self.under_way < seconds:
            waiting = asyncio.wrap_future(self.ask())
            # Else asyncio would log what the call raised that nobody waited for.
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
