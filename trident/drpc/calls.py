"""Calls that wait for their answer, of a thread or of an event loop."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from threading import Lock
from time import monotonic

Answer = str | Exception
"""What a call ends with."""


class Call(ABC):
    """One request in a queue.

    `request_id` tells it from others, where its client may repeat it.
    """

    __slots__ = ("args", "began", "request_id")

    def __init__(self, args: str, request_id: str | None = None) -> None:
        self.args = args
        self.request_id = request_id
        self.began = monotonic()

    @abstractmethod
    def end(self, answer: Answer) -> None:
        """End the call, in any thread; the first of several ends it."""


class ThreadCall(Call):
    """The call of a thread that waits for it."""

    __slots__ = ("_ended", "answer")

    def __init__(self, args: str, request_id: str | None = None) -> None:
        super().__init__(args, request_id)
        self.answer: Answer | None = None
        self._ended = Lock()
        self._ended.acquire()

    def end(self, answer: Answer) -> None:
        if self.answer is None:
            self.answer = answer
            self._ended.release()

    def wait(self, seconds: float) -> Answer | None:
        """The answer, None where there is none within `seconds`."""
        if self._ended.acquire(timeout=max(0.0, seconds)):
            self._ended.release()
        return self.answer


class LoopCall(Call):
    """The call of a coroutine, which awaits :attr:`future`."""

    __slots__ = ("_ends", "future")

    def __init__(self, args: str, ends: LoopEnds, request_id: str | None = None) -> None:
        super().__init__(args, request_id)
        self.future: asyncio.Future[str] = ends.loop.create_future()
        self._ends = ends

    def end(self, answer: Answer) -> None:
        self._ends.put(self.future, answer)


class LoopEnds:
    """Brings the answers to calls of one event loop into its thread, together."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ended: deque[tuple[asyncio.Future[str], Answer]] = deque()
        self._told = False

    def put(self, future: asyncio.Future[str], answer: Answer) -> None:
        """Called by any thread: a call has its answer."""
        self._ended.append((future, answer))
        if not self._told:
            self._told = True
            try:
                self.loop.call_soon_threadsafe(self._hand_over)
            except RuntimeError:
                self._ended.clear()  # the loop is closed, and nobody waits

    def _hand_over(self) -> None:
        self._told = False  # what comes from here on tells the loop again
        while self._ended:
            future, answer = self._ended.popleft()
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
