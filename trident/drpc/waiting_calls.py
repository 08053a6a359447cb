"""The calls of one function that wait for their answer, in the order in which they came."""

from __future__ import annotations

import sys
from itertools import islice

from trident.drpc.calls import Call
from trident.drpc.errors import DRPCClosedError, DRPCQueueFullError

MOST_BYTES = 64 * 2**20
"""What the arguments of all calls in a queue may take in memory: one character of four bytes makes
all of its text take four each."""


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
        """Add a call."""
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
        """Take all calls out."""
        return self.take(len(self._calls))
