"""Calls that wait for their answer, of a thread or of an event loop, and their queue."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from trident.drpc.errors import (
    DRPCClosedError,
    DRPCQueueFullError,
    DRPCUsageError,
    MalformedRequestError,
)

if TYPE_CHECKING:
    import asyncio  # which takes its time, and clients need none of it

Answer = str | Exception
"""What a call ends with."""

_LONGEST = 200
MOST_BYTES = 64 * 2**20
"""What the arguments of all calls in a queue may take in memory: one character of four bytes makes
all of its text take four each."""


class Call(Future[str]):
    """One request in a queue.

    `request_id` identifies it, where its client may repeat it.
    """

    def __init__(self, args: str, request_id: str | None = None) -> None:
        super().__init__()
        self.args = args
        self.request_id = request_id
        self.began = monotonic()

    def end(self, answer: Answer) -> None:
        """End the call, in any thread; the first of several ends it."""
        with suppress(InvalidStateError):
            if isinstance(answer, Exception):
                self.set_exception(answer)
            else:
                self.set_result(answer)


class LoopEnds:
    """Brings the ends of calls into the thread of one event loop, several at once: to wake the loop
    for each would take half of the time of a call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ended: deque[tuple[asyncio.Future[str], Call]] = deque()
        self._woken = False

    def future_of(self, call: Call) -> asyncio.Future[str]:
        """Return what a coroutine of the loop awaits for the answer to a call."""
        future: asyncio.Future[str] = self._loop.create_future()
        call.add_done_callback(lambda ended: self._put(future, call))
        return future

    def _put(self, future: asyncio.Future[str], call: Call) -> None:
        self._ended.append((future, call))
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._hand_over)
            except RuntimeError:
                self._ended.clear()  # the loop is closed, and nobody waits

    def _hand_over(self) -> None:
        self._woken = False  # the next end wakes the loop again
        while self._ended:
            future, call = self._ended.popleft()
            if future.done():
                continue
            if (error := call.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(call.result())


class CallQueue(ABC):
    """The calls of one name that wait, and what answers them."""

    _waiting: WaitingCalls

    @property
    def waiting(self) -> int:
        """How many calls are in the queue."""
        return len(self._waiting)

    def answer_alone(self, args: str) -> str | None:
        """Answer a call in this thread; None, the default, where it belongs into the queue."""
        return None

    @abstractmethod
    def put(self, call: Call) -> None:
        """Put a call into the queue."""

    @abstractmethod
    def leave(self, call: Call) -> None:
        """Take a call out of the queue, if it is still in it."""

    def hurry(self) -> None:
        """Do what can be done for calls that wait; called by whoever has waited for long."""

    @abstractmethod
    def close(self, seconds: float) -> None:
        """Take no more calls, and wait `seconds` at most for the answers to the others."""


def check_request_id(request_id: object) -> None:
    """Refuse an id that is empty, too long, or holds what no header could carry."""
    if request_id is None:
        return
    text = isinstance(request_id, str) and request_id.isascii() and request_id.isprintable()
    if not text or not 0 < len(str(request_id)) <= _LONGEST:
        problem = f"the request id is no text of 1 to {_LONGEST} printable ASCII characters"
        raise MalformedRequestError(problem)


class WaitingCalls:
    """A queue with an end, which calls may leave; its owner's lock is held for each change.

    Its owner says when it is `closed`, and takes no more.
    """

    def __init__(self, function: str, most: int) -> None:
        self._function = function
        self._most = most
        self._calls: dict[Call, int] = {}  # each with its size, which may grow while it waits
        self._bytes = 0
        self.closed = False

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: Call) -> None:
        if self.closed:
            raise DRPCClosedError(self._function)
        size = sys.getsizeof(call.args)
        if len(self._calls) >= self._most or self._bytes + size > MOST_BYTES:
            raise DRPCQueueFullError(self._function, len(self._calls))
        self._calls[call] = size
        self._bytes += size

    def remove(self, call: Call) -> None:
        """Take a call out, if it is still in the queue."""
        self._bytes -= self._calls.pop(call, 0)

    def take(self, most: int) -> list[Call]:
        """Take the first calls out, `most` of them at most."""
        taken = list(islice(self._calls, most))
        for call in taken:
            self.remove(call)
        return taken

    def take_all(self) -> list[Call]:
        return self.take(len(self._calls))


def check_seconds(name: str, timeout: object) -> None:
    """Refuse a timeout that isn't a positive, finite number of seconds."""
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout < float("inf"):  # type: ignore[operator]
        raise DRPCUsageError(f"{name}: the timeout is a number of seconds, found", repr(timeout))
