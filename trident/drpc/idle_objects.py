"""Objects that one thread uses at a time, kept for the next thread that needs one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class IdleObjects(Generic[T]):
    """Lends an idle object to each thread that asks, or a new one where all are in use."""

    def __init__(self, make: Callable[[], T], close: Callable[[T], object]) -> None:
        self._make = make
        self._close_one = close
        self._idle: deque[T] = deque()
        self._closed = False

    def take(self) -> T:
        """Return an object for the caller alone; raises what making it does."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._make()

    def give_back(self, used: T) -> None:
        """Let another thread use it."""
        self._idle.append(used)
        if self._closed:
            self.close()

    def close(self) -> None:
        """Close those that are idle, and each other one when it is given back."""
        self._closed = True
        while self._idle:
            try:
                idle = self._idle.pop()
            except IndexError:  # another thread has closed the last
                return
            self._close_one(idle)
