"""Calls that wait for their answer, of a thread or of an event loop, and their queue."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from itertools import islice
from threading import Lock
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


class CallQueue(ABC):
    """The calls of one name that wait, and what answers them."""

    _waiting: WaitingCalls

    @property
    def waiting(self) -> int:
        """How many calls are in the queue."""
        return len(self._waiting)

    def answer_alone(self, args: str) -> str | None:
        """Answer a call in this thread; None, as by default, where it is better put in."""
        return None

    @abstractmethod
    def put(self, call: Call) -> None:
        """Put a call into the queue."""

    @abstractmethod
    def leave(self, call: Call) -> None:
        """Take a call out of the queue, where it still is."""

    def hurry(self) -> None:
        """Called by whoever has waited for long."""

    @abstractmethod
    def close(self, seconds: float) -> None:
        """Take no more calls, and wait `seconds` at most for the answers to those that are here."""


def check_request_id(request_id: object) -> None:
    """Refuse what can't tell a request from others.

    It must not be empty or too long, nor hold what no header could carry.
    """
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
        """Take a call out, where it still is."""
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
    """Refuse what is no number of seconds."""
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout < float("inf"):  # type: ignore[operator]
        raise DRPCUsageError(f"{name}: the timeout is a number of seconds, found", repr(timeout))
