"""What each process has of its own: connections and threads are none that a fork can share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """Makes something once in each process that asks for it.

    A forked process leaves alone what its parent has made: other threads of the parent may have
    held its locks.

    Two threads that ask first at the same time may both call `make`.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: dict[int, T] = {}

    def get(self) -> T:
        """Return that of this process."""
        process = os.getpid()
        made = self._made.get(process)
        if made is None:
            made = self._made.setdefault(process, self._make())
        return made

    def pop(self) -> T | None:
        """Take out that of this process, where there is one; another one is made when asked."""
        return self._made.pop(os.getpid(), None)
