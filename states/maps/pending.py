"""The keys of one attempt, with their values before the batch and their new values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, islice, repeat
from operator import is_, is_not
from typing import Any

_UNCHANGED: Any = object()
"""The new value of a key that was read, and not updated."""


class PendingUpdates:
    """Columns of the keys that were read, their values before the batch, and their new values."""

    # Most batches use each key in one call only. So positions are found when a second call needs
    # them.

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._befores: list[Any] = []
        self._values: list[Any] = []
        self._positions: dict[bytes, int] = {}

    @property
    def positions(self) -> Mapping[bytes, int]:
        positions, keys = self._positions, self._keys
        if len(positions) < len(keys):
            fresh = range(len(positions), len(keys))
            positions.update(zip(islice(keys, len(positions), None), fresh, strict=True))
        return positions

    def has_any(self, keys: Sequence[bytes]) -> bool:
        """Return whether any of `keys` was read."""
        return bool(self._keys) and not self.positions.keys().isdisjoint(keys)

    def missing(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of `keys` that were not read yet, each once."""
        if not self._keys:
            return list(dict.fromkeys(keys))
        positions = self.positions
        return [key for key in dict.fromkeys(keys) if key not in positions]

    def add(self, keys: Sequence[bytes], befores: Sequence[Any]) -> None:
        """Add keys that were not read yet, and their values before the batch."""
        self._keys += keys
        self._befores += befores
        self._values += repeat(_UNCHANGED, len(keys))

    def put(self, keys: Sequence[bytes], values: Sequence[Any]) -> None:
        """Keep new values of distinct keys, all of which were read."""
        if self._keys[-len(keys) :] == keys:
            self._values[-len(keys) :] = values
            return
        for position, value in zip(map(self.positions.__getitem__, keys), values, strict=True):
            self._values[position] = value

    def currents(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the present values of keys, all of which were read."""
        positions, values, befores = self.positions, self._values, self._befores
        return [
            befores[position] if values[position] is _UNCHANGED else values[position]
            for position in map(positions.__getitem__, keys)
        ]

    def updated_keys(self) -> list[bytes]:
        return list(compress(self._keys, self._are_updated()))

    def removed_keys(self) -> set[bytes]:
        """Return the keys whose new value is None."""
        return set(compress(self._keys, map(is_, self._values, repeat(None))))

    def chunks(self, size: int) -> Iterator[tuple[Sequence[bytes], Sequence[Any], Sequence[Any]]]:
        """Yield the updated keys, their new values and those before, `size` keys at a time."""
        columns: tuple[list[Any], ...] = self._keys, self._values, self._befores
        if not all(self._are_updated()):
            columns = tuple(list(compress(column, self._are_updated())) for column in columns)
        for start in range(0, len(columns[0]), size):
            keys, values, befores = (column[start : start + size] for column in columns)
            yield keys, values, befores

    def _are_updated(self) -> Iterator[bool]:
        return map(is_not, self._values, repeat(_UNCHANGED))
