"""Functions that other processes answer: they fetch requests, and return results."""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import Sequence
from secrets import token_hex
from time import monotonic
from typing import NamedTuple

from trident.drpc.errors import (
    DRPCClosedError,
    DRPCExecutionError,
    DRPCQueueFullError,
    DRPCTimeoutError,
    MalformedRequestError,
)

FRESH = 60.0
"""Seconds for which a function is known after a process has asked for its requests."""
MOST_FUNCTIONS = 1_000
MOST_WAITING = 1_000
MOST_NAME = 1_000
"""Characters of a function's name."""
MOST_BYTES = 64 * 2**20
"""What the arguments of all requests may take in memory."""


class _Request(NamedTuple):
    function: str
    args: str
    answer: asyncio.Future[str]


class Invocations:
    """Keeps requests until another process fetches them; used in one event loop.

    A function is known while a process asks for its requests. A request is forgotten when its
    caller no longer waits.
    """

    def __init__(self) -> None:
        self._asked: OrderedDict[str, float] = OrderedDict()
        self._waiting: dict[str, deque[str]] = {}
        self._requests: dict[str, _Request] = {}
        self._bytes = 0

    @property
    def functions(self) -> Sequence[str]:
        """The functions that other processes answer."""
        now = monotonic()
        return tuple(name for name, asked in self._asked.items() if now - asked < FRESH)

    async def execute_async(
        self,
        function: str,
        args: str,
        timeout: float | None = None,
        *,
        request_id: str | None = None,
    ) -> str:
        """Have a request answered; raises what `LocalDRPC.execute_async` does.

        Storm's interface has no place for the ids that clients give to requests.
        """
        waiting = self._waiting.setdefault(function, deque())
        size = sys.getsizeof(args)
        if len(waiting) >= MOST_WAITING or self._bytes + size > MOST_BYTES:
            raise DRPCQueueFullError(function, len(waiting))
        id = token_hex(16)  # so only a process that has fetched the request can return a result
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._requests[id] = _Request(function, args, answer)
        self._bytes += size
        waiting.append(id)
        began = monotonic()
        try:
            return await asyncio.wait_for(answer, timeout)
        except TimeoutError:
            error = DRPCTimeoutError(function, monotonic() - began, len(waiting))
            raise error from None
        finally:
            del self._requests[id]
            self._bytes -= size
            if id in waiting:
                waiting.remove(id)

    def fetch(self, function: str) -> tuple[str, str]:
        """Return the arguments and the id of a request; both empty where no request waits."""
        if len(function) > MOST_NAME:
            raise MalformedRequestError(f"a function's name has {MOST_NAME} characters at most")
        self._asked[function] = monotonic()
        self._asked.move_to_end(function)
        if len(self._asked) > MOST_FUNCTIONS:
            forgotten, _ = self._asked.popitem(last=False)
            self._waiting.pop(forgotten, None)
        waiting = self._waiting.get(function)
        if not waiting:
            return "", ""
        id = waiting.popleft()
        return self._requests[id].args, id

    def result(self, id: str, result: str) -> None:
        """Answer a request; its caller may no longer wait."""
        request = self._requests.get(id)
        if request is not None and not request.answer.done():
            request.answer.set_result(result)

    def fail(self, id: str, message: str = "Request failed") -> None:
        request = self._requests.get(id)
        if request is not None and not request.answer.done():
            error = DRPCExecutionError(request.function, request.args, message)
            request.answer.set_exception(error)

    def close(self) -> None:
        for request in self._requests.values():
            if not request.answer.done():
                request.answer.set_exception(DRPCClosedError(request.function))
