"""Idle connections: lent for a call, and kept in between by the process that opened them."""

from __future__ import annotations

import atexit
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from math import inf
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

Place = TypeVar("Place", bound=Hashable)
Connection = TypeVar("Connection", bound=Any)


class _Idle(NamedTuple, Generic[Connection]):
    connection: Connection
    since: float


class Pool(Generic[Place, Connection]):
    """The idle connections of each process, by place.

    `connect` opens a connection, which has a ``close()``. If `is_usable` raises, the connection
    can't be used.

    A forked child must neither use nor close its parent's connections: both would use one socket,
    and a farewell would end the parent's session. So connections are kept by process, and a child
    leaves those of its parent untouched, even if it was forked while one was lent.
    """

    def __init__(
        self,
        connect: Callable[[Place], Connection],
        is_usable: Callable[[Connection], bool],
        idle_seconds: float = inf,
    ) -> None:
        self.idle_seconds = idle_seconds
        self._connect = connect
        self._is_usable = is_usable
        # By process and place; the last used connection at the end.
        self._idle: dict[tuple[int, Place], deque[_Idle[Connection]]] = {}
        _pools.add(self)

    @contextmanager
    def lend(self, place: Place) -> Iterator[Connection]:
        """Lend a connection for the caller alone; after an error it is closed, not kept."""
        process = os.getpid()
        idle = self._idle.setdefault((process, place), deque())
        connection = self._take(idle)
        if connection is None:
            connection = self._connect(place)
        try:
            yield connection
        except BaseException:
            if process == os.getpid():
                connection.close()
            raise
        now = monotonic()
        idle.append(_Idle(connection, now))
        with suppress(IndexError):  # another thread may take the last one
            while idle[0].since < now - self.idle_seconds:
                idle.popleft().connection.close()

    def close_idle(self) -> None:
        """Close the idle connections of this process; lent ones stay open."""
        for (process, _), idle in list(self._idle.items()):
            with suppress(IndexError):
                while process == os.getpid():
                    idle.pop().connection.close()

    def _take(self, idle: deque[_Idle[Connection]]) -> Connection | None:
        with suppress(IndexError):
            while True:
                connection, since = idle.pop()
                with suppress(Exception):
                    if monotonic() - since <= self.idle_seconds and self._is_usable(connection):
                        return connection
                connection.close()
        return None


@contextmanager
def closed_after_error(connection: Connection) -> Iterator[Connection]:
    """Lend a new connection to be prepared; after an error it is closed."""
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


_pools: WeakSet[Pool[Any, Any]] = WeakSet()


@atexit.register
def _close_all() -> None:
    with ExitStack() as closing:
        for pool in list(_pools):
            closing.callback(pool.close_idle)
