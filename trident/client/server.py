"""A server as its clients see it, whatever it speaks."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class FunctionRequest(NamedTuple):
    """A request to a function, the same at each server."""

    function: str
    args: str
    id: str


class Within(NamedTuple):
    """How long a server has.

    An answer has to come before `until`, by ``time.monotonic()``, and a connection in `connecting`
    seconds.
    """

    until: float
    connecting: float

    def remaining(self) -> float:
        """Return the remaining seconds, never 0: sockets would take that for no limit."""
        return max(0.001, self.until - monotonic())


class LostError(Exception):
    """A request was sent, and the connection has ended without an answer."""


class Server(ABC):
    """One server."""

    def __init__(self, host: str, port: int) -> None:
        self.address = f"{host}:{port}"
        self.knows_ids: bool | None = None
        """Whether it applies a request once, however often it comes; None before it was asked."""

    def execute(self, asked: FunctionRequest, within: Within) -> str:
        """Call a function; a server is asked before its first call whether it knows ids.

        Raises the DRPCError that the server answers with, LostError if the connection ended after
        the call was sent, TimeoutError if no answer came in time, and OSError if the server could
        not be reached.
        """
        if self.knows_ids is None:
            try:
                self.knows_ids = self._ask_for_ids(within)
            except LostError as error:
                raise ConnectionError(str(error)) from error  # no call was sent
        return self._execute(asked, within)

    @abstractmethod
    def _ask_for_ids(self, within: Within) -> bool:
        """Ask whether it knows ids, by a request that runs nothing on any server."""

    @abstractmethod
    def _execute(self, asked: FunctionRequest, within: Within) -> str:
        """Call a function, once."""

    @abstractmethod
    def close(self) -> None:
        """End the idle connections."""


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
        process = os.getpid()
        made = self._made.get(process)
        if made is None:
            made = self._made.setdefault(process, self._make())
        return made

    def pop(self) -> T | None:
        """Take out the one of this process, if it was made; :meth:`get` makes another one."""
        return self._made.pop(os.getpid(), None)
