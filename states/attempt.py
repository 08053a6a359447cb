"""The updates of one attempt: remembered, then written once a key."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from operator import add
from typing import Any

from trident.states.backing_map import Ability, IBackingMap, abilities
from trident.states.control import ControlRecord
from trident.states.errors import LongOverflowError, StateError
from trident.states.keys import decode_key
from trident.states.pending import UNTOUCHED, Pending
from trident.states.rules import Rules
from trident.states.updaters import Combiner, CombinerValueUpdater, check_addable
from trident.states.values import StateType, are_longs
from trident.states.write_paths import FencedPath, write_path

Update = Callable[[Any], Any]

_CHUNK = 2**16
_IMMUTABLE = frozenset({int, float, str, bool, bytes, type(None)})


class Attempt:
    """What one attempt of a batch has done to a map so far; all keys are encoded.

    Parameters
    ----------
    record : ControlRecord
        What was begun.
    store : IBackingMap
        A map of encoded keys and value objects.
    rules : Rules
        How its entries are read and written.
    """

    def __init__(self, record: ControlRecord, store: IBackingMap, rules: Rules) -> None:
        self.record = record
        self._store = store
        self._rules = rules
        self._path = write_path(store)
        self._path.begin(record)
        self._pending = Pending()
        self._applied: set[bytes] = set()
        self._calls: list[tuple[Sequence[bytes], Sequence[Update]]] = []
        self._folds: dict[bytes, Any] = {}  # what is combined at the flush, and by whom
        self._folder: Combiner | None = None
        # Without the general fenced write a store could not take the other updates so.
        able = abilities(store) if isinstance(self._path, FencedPath) else frozenset()
        self._store_adds = rules.kind is StateType.OPAQUE and Ability.ADD in able
        self._store_removes = Ability.REMOVE in able

    def keys(self) -> list[bytes]:
        """Return the keys with something pending."""
        return [*self._pending.touched(), *self._folds]

    def get(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the values of `keys` with what is pending."""
        self._settle(keys)
        values = dict(zip(keys, map(self._pending.value, keys), strict=True))
        asked = [key for key, value in values.items() if value is UNTOUCHED]
        if asked:
            read = self._rules.read(self._store.multiGet(asked), self.record)
            values.update(zip(asked, read, strict=True))
        return list(map(values.__getitem__, keys))

    def update(self, keys: Sequence[bytes], updates: Sequence[Update]) -> list[Any]:
        """Update each key by its function, a repeated key in order; return the new values."""
        _check_lengths(keys, updates)
        currents = self._currents(keys)
        fresh: dict[bytes, Any] = {}
        values = []
        for key, current, update in zip(keys, currents, updates, strict=True):
            if key in self._applied:
                values.append(current)
                continue
            value = update(_own(fresh.get(key, current)))
            fresh[key] = value
            values.append(value)
        _check_longs(keys, values)
        self._pending.put(list(fresh), list(fresh.values()))
        self._remember(keys, updates)
        return values

    def put(self, keys: Sequence[bytes], updates: Sequence[Update]) -> None:
        """Update each key, without an answer, even where this batch was already applied to it."""
        _check_lengths(keys, updates)
        self._currents(keys)
        self._applied.difference_update(keys)
        self.update(keys, updates)

    def combine(
        self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner
    ) -> list[Any]:
        """Combine a partial result into each key and return the new values."""
        _check_lengths(keys, partials)
        currents = self._currents(keys)
        if combiner.adds:
            check_addable(keys, currents)
        if (
            len(set(keys)) < len(keys)
            or not self._applied.isdisjoint(keys)
            or not set(map(type, currents)) <= _IMMUTABLE
        ):
            return self.update(keys, _Combined(combiner, partials))
        values = _combined(keys, currents, partials, combiner)
        self._pending.put(keys, values)
        self._remember(keys, _Combined(combiner, partials))
        return values

    def _remember(self, keys: Sequence[bytes], updates: Sequence[Update]) -> None:
        """Keep a call, where a flush may have to do it again."""
        if self._path.redoes:
            self._calls.append((keys, updates))

    def fold(self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner) -> None:
        """Combine without an answer: at the flush, where the store adds by itself."""
        _check_lengths(keys, partials)
        adds = self._store_adds and combiner.adds and set(map(type, partials)) <= {int, float}
        if not adds or self._pending.knows(keys):
            self.combine(keys, partials, combiner)
            return
        self._folder = combiner
        folds = dict(zip(keys, partials, strict=True))
        if len(folds) < len(keys) or not self._folds.keys().isdisjoint(folds):
            sums = {key: self._folds[key] for key in folds if key in self._folds}
            for key, partial in zip(keys, partials, strict=True):
                sums[key] = combiner.combine(sums[key], partial) if key in sums else partial
            folds = sums
        _check_longs(list(folds), list(folds.values()))
        self._folds.update(folds)

    def flush(self, dead: set[bytes]) -> set[bytes]:
        """Write everything; return the keys that were removed.

        Parameters
        ----------
        dead : set of bytes
            Keys removed by earlier batches, whose tombstones may go now.
        """
        self._remove(dead)
        folded, partials = list(self._folds), list(self._folds.values())
        if self._store_adds and isinstance(self._path, FencedPath):
            for start in range(0, len(folded), _CHUNK):
                self._path.add(folded[start : start + _CHUNK], partials[start : start + _CHUNK])
        for keys, values, befores in self._pending.chunks(_CHUNK):
            self._path.write(keys, self._rules.write(values, befores, self.record), self._redo)
        return self._pending.removed()

    def _remove(self, dead: set[bytes]) -> None:
        """Remove tombstones physically, but none of a key that this attempt writes.

        A second task of this attempt may have written that key already. Of the other keys nobody
        writes until the next batch, because each has one task a batch.
        """
        if not (dead and self._store_removes and isinstance(self._path, FencedPath)):
            return
        places = self._pending.places
        keys = [key for key in dead if key not in places and key not in self._folds]
        if keys:
            entries = zip(keys, self._store.multiGet(keys), strict=True)
            gone = [key for key, entry in entries if self._rules.is_dead(entry, self.record)]
            if gone:
                self._path.remove(gone)

    def _redo(self, keys: Sequence[bytes], stored: Sequence[Any]) -> Sequence[Any]:
        befores = self._rules.read(stored, self.record)
        applied = set(self._rules.applied(keys, stored, self.record))
        values = dict(zip(keys, befores, strict=True))
        for called, updates in self._calls:
            for position, key in enumerate(called):
                if key in values:
                    values[key] = updates[position](_own(values[key]))
        _check_longs(keys, list(values.values()))
        entries = self._rules.write(list(values.values()), befores, self.record)
        return [
            old if key in applied else new
            for key, old, new in zip(keys, stored, entries, strict=True)
        ]

    def _currents(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the values that updates of `keys` start from, each key read once an attempt."""
        self._settle(keys)
        asked = self._pending.unknown(keys)
        if asked:
            stored = self._path.read(asked)
            read = self._rules.read(stored, self.record)
            self._applied.update(self._rules.applied(asked, stored, self.record))
            self._pending.add(asked, read)
            if len(asked) == len(keys):
                return read
        return self._pending.currents(keys)

    def _settle(self, keys: Iterable[bytes]) -> None:
        """Turn folds into ordinary updates, for keys that are used otherwise too."""
        if self._folder is None or self._folds.keys().isdisjoint(keys):
            return
        folds = {key: self._folds.pop(key) for key in set(keys) if key in self._folds}
        self.combine(list(folds), list(folds.values()), self._folder)


def _combined(
    keys: Sequence[bytes], currents: Sequence[Any], partials: Sequence[Any], combiner: Combiner
) -> list[Any]:
    # What adds is called for plain numbers only where they leave the 64 bits.
    if combiner.adds and set(map(type, currents)) | set(map(type, partials)) == {int}:
        values = list(map(add, currents, partials))
        if are_longs(values):
            return values
    combine = combiner.combine
    values = [
        partial if current is None else combine(current, partial)
        for current, partial in zip(currents, partials, strict=True)
    ]
    _check_longs(keys, values)
    return values


class _Combined(Sequence[Update]):
    """The updates that combine partial results, made only where they are needed."""

    def __init__(self, combiner: Combiner, partials: Sequence[Any]) -> None:
        self._combiner = combiner
        self._partials = partials

    def __len__(self) -> int:
        return len(self._partials)

    def __getitem__(self, position: Any) -> Any:
        return CombinerValueUpdater(self._combiner, self._partials[position]).update


def _own(value: Any) -> Any:
    """Return `value` so that an updater that changes it in place changes no one else's."""
    return value if type(value) in _IMMUTABLE else copy.deepcopy(value)


def _check_lengths(keys: Sequence[Any], others: Sequence[Any]) -> None:
    if len(keys) != len(others):
        raise StateError(f"{len(keys)} keys came with {len(others)} values; give one for each key")


def _check_longs(keys: Sequence[bytes], values: Sequence[Any]) -> None:
    if are_longs(values):
        return
    for key, value in zip(keys, values, strict=True):
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise LongOverflowError(f"the value of key {decode_key(key)!r}", value)
