"""The backing map over one Redis server: alone, or the master that Sentinels name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.backends.redis_access import Access
from trident.backends.redis_connections import Address
from trident.backends.redis_control import Waiting, replace
from trident.backends.redis_layouts import Layout
from trident.backends.redis_parts import PartedMap
from trident.backends.redis_places import Place


class RedisMap(PartedMap):
    """The entries of one state on one server; see :class:`PartedMap`.

    Parameters
    ----------
    place : Place
        Where the server is.
    access : Access
        How it lets us in.
    layout : Layout
        How entries are stored.
    waiting : Waiting
        What :meth:`persist` waits for.
    """

    def __init__(self, place: Place, access: Access, layout: Layout, waiting: Waiting) -> None:
        super().__init__(access, [layout], waiting)
        self.where = place.where
        self._place = place
        self._layout = layout

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._place, self._access, self._layout, self._waiting)

    def getControl(self) -> bytes | None:
        record: bytes | None = self._ask("GET", self._layout.control)
        return record

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        return bool(self._ask(*replace(self._layout.control, new, expected)))

    def _find(self) -> Sequence[Address]:
        return [self._place.find()]

    def _ask(self, *command: bytes | str | int) -> Any:
        [answer] = self._converse({0: [lambda: command]})[0]
        return answer


class ListedRedisMap(RedisMap):
    """The same, where the server can tell the state's keys from others."""

    def entries(self) -> list[tuple[bytes, bytes]]:
        """Return every key and its value; one that is written meanwhile may be old or new."""
        found: dict[bytes, bytes] = {}
        cursor: bytes | None = None
        while cursor != b"0":
            cursor, page = self._ask(*self._layout.scan(cursor or b"0"))
            keys = self._layout.scanned(page)
            entries = zip(keys, self.multiGet(keys), strict=True)
            found.update((key, value) for key, value in entries if value is not None)
        return list(found.items())
