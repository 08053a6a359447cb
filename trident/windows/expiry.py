"""When entries of a state expire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trident.states.maps.stored_map import StoredMap
from trident.windows.watermarks import milliseconds
from trident.windows.windows import Duration


@dataclass(frozen=True)
class Expiry:
    """An entry expires `after` milliseconds from its last update.

    The time of an update is the latest one of its tuples by their `field`, of type `kind`; without
    a field it is that of the batch.
    """

    after: int
    field: str | None = None
    kind: str | None = None

    def __str__(self) -> str:
        by = "" if self.field is None else f" by {self.field}"
        return f"expire_after={Duration(self.after)}{by}"

    def date(self, state: StoredMap, keys: Sequence[bytes], times: Sequence[Any]) -> None:
        """Date what the batch writes: each of the encoded `keys`, or without keys everything."""
        if self.field is None or not times:  # an updater may write something without any tuple
            state.expire(self.after)
            return
        known = milliseconds(self.kind, times, str(self))
        if not keys:
            state.expire(self.after, max(known))
            return
        latest: dict[bytes, int] = {}
        for key, time in zip(keys, known, strict=True):
            if time > latest.get(key, time - 1):
                latest[key] = time
        state.expire(self.after, latest)
