"""The updates of one attempt: remembered, then written once a key."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from operator import add, is_
from typing import Any

from trident.states.backing_map import Ability, IBackingMap, abilities
from trident.states.cached import doubt
from trident.states.control import ControlRecord
from trident.states.errors import LongOverflowError, StateError
from trident.states.keys import decode_key
from trident.states.rules import Rules
from trident.states.updaters import Combiner, CombinerValueUpdater
from trident.states.values import StateType
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

    Notes
    -----
    What is handed out goes where no later comparison reaches it: into another key, another state.
    So it is computed from what the store itself holds. Only what nobody is told may be computed
    from a cache's old entry, because the write finds that out and computes it again.
    """

    def __init__(self, record: ControlRecord, store: IBackingMap, rules: Rules) -> None:
        self.record = record
        self._store = store
        self._rules = rules
        self._path = write_path(store)
        self._path.begin(record)
        self._befores: dict[bytes, Any] = {}
        self._values: dict[bytes, Any] = {}
        self._believed: set[bytes] = set()  # keys of which a cache was asked
        self._applied: set[bytes] = set()
        self._calls: list[tuple[Sequence[bytes], Sequence[Update]]] = []
        self._adds: dict[bytes, Any] = {}
        self._adder: Combiner | None = None
        # Without the general fenced write a store could not take the other updates so.
        able = abilities(store) if isinstance(self._path, FencedPath) else frozenset()
        self._store_adds = rules.kind is StateType.OPAQUE and Ability.ADD in able
        self._store_removes = Ability.REMOVE in able

    def keys(self) -> list[bytes]:
        """Return the keys with something pending."""
        return [*self._values, *self._adds]

    def get(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the values of `keys` with what is pending."""
        self._settle(keys)
        self._make_sure(keys)
        values = self._values
        asked = [key for key in dict.fromkeys(keys) if key not in values]
        found: dict[bytes, Any] = {}
        if asked:
            doubt(self._store, asked)
            read = self._rules.read(self._store.multiGet(asked), self.record)
            found.update(zip(asked, read, strict=True))
        return [values[key] if key in values else found[key] for key in keys]

    def update(self, keys: Sequence[bytes], updates: Sequence[Update]) -> list[Any]:
        """Update each key by its function, a repeated key in order; return the new values."""
        self._make_sure(keys)
        return self._update(keys, updates)

    def _update(
        self, keys: Sequence[bytes], updates: Sequence[Update], believing: bool = False
    ) -> list[Any]:
        _check_lengths(keys, updates)
        currents = self._currents(keys, believing)
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
        self._values.update(fresh)
        self._remember(keys, updates)
        return values

    def put(self, keys: Sequence[bytes], updates: Sequence[Update]) -> None:
        """Update each key even where this batch has already been applied to it."""
        _check_lengths(keys, updates)
        self._currents(keys, believing=True)
        self._applied.difference_update(keys)
        self._update(keys, updates)

    def combine(
        self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner
    ) -> list[Any]:
        """Combine a partial result into each key and return the new values."""
        self._make_sure(keys)
        return self._combine(keys, partials, combiner)

    def _combine(
        self,
        keys: Sequence[bytes],
        partials: Sequence[Any],
        combiner: Combiner,
        believing: bool = False,
    ) -> list[Any]:
        _check_lengths(keys, partials)
        currents = self._currents(keys, believing)
        if (
            len(set(keys)) < len(keys)
            or not self._applied.isdisjoint(keys)
            or not set(map(type, currents)) <= _IMMUTABLE
        ):
            return self._update(keys, _Combined(combiner, partials), believing)
        values = _combined(currents, partials, combiner)
        _check_longs(keys, values)
        self._values.update(zip(keys, values, strict=True))
        self._remember(keys, _Combined(combiner, partials))
        return values

    def _remember(self, keys: Sequence[bytes], updates: Sequence[Update]) -> None:
        """Keep a call, where a flush may have to do it again."""
        if self._path.redoes:
            self._calls.append((keys, updates))

    def fold(self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner) -> None:
        """Combine without an answer; a store that adds by itself does so at the flush."""
        _check_lengths(keys, partials)
        if not (
            self._store_adds
            and combiner.adds
            and set(map(type, partials)) <= {int, float}
            and self._values.keys().isdisjoint(keys)
        ):
            if self._path.redoes:
                self._believed.update(set(keys) - self._befores.keys())
            self._combine(keys, partials, combiner, believing=True)
            return
        self._adder = combiner
        amounts = dict(zip(keys, partials, strict=True))
        if len(amounts) < len(keys) or not self._adds.keys().isdisjoint(amounts):
            sums = {key: self._adds[key] for key in amounts if key in self._adds}
            for key, partial in zip(keys, partials, strict=True):
                sums[key] = combiner.combine(sums[key], partial) if key in sums else partial
            amounts = sums
        _check_longs(list(amounts), list(amounts.values()))
        self._adds.update(amounts)

    def flush(self, dead: set[bytes]) -> set[bytes]:
        """Write everything; return the keys that were removed.

        Parameters
        ----------
        dead : set of bytes
            Keys removed by earlier batches, whose tombstones may go now.
        """
        self._remove(dead)
        if isinstance(self._path, FencedPath):
            for keys in _chunks(list(self._adds)):
                self._path.add(keys, list(map(self._adds.__getitem__, keys)))
        for keys in _chunks(list(self._values)):
            values = list(map(self._values.__getitem__, keys))
            befores = list(map(self._befores.__getitem__, keys))
            self._path.write(keys, self._rules.write(values, befores, self.record), self._redo)
        removed = any(map(is_, self._values.values(), repeat(None)))
        return {key for key, value in self._values.items() if value is None} if removed else set()

    def _remove(self, dead: set[bytes]) -> None:
        """Remove tombstones physically, but none of a key that this attempt writes.

        A second task of this attempt may have written that key already. Of the other keys nobody
        writes until the next batch, because each has one task a batch.
        """
        if not self._store_removes or not isinstance(self._path, FencedPath):
            return
        keys = [key for key in dead if key not in self._values and key not in self._adds]
        if keys:
            entries = zip(keys, self._store.multiGet(keys), strict=True)
            gone = [key for key, entry in entries if self._rules.is_dead(entry, self.record)]
            if gone:
                self._path.remove(gone)

    def _redo(self, keys: Sequence[bytes], stored: Sequence[Any]) -> Sequence[Any]:
        befores = self._rules.read(stored, self.record)
        applied = set(self._rules.applied(keys, stored, self.record))
        values = self._computed(keys, befores)
        entries = self._rules.write(list(values.values()), befores, self.record)
        return [
            old if key in applied else new
            for key, old, new in zip(keys, stored, entries, strict=True)
        ]

    def _computed(self, keys: Sequence[bytes], befores: Sequence[Any]) -> dict[bytes, Any]:
        """Return what all the calls so far make of each key."""
        values = dict(zip(keys, befores, strict=True))
        for called, updates in self._calls:
            for position, key in enumerate(called):
                if key in values:
                    values[key] = updates[position](_own(values[key]))
        _check_longs(keys, list(values.values()))
        return values

    def _make_sure(self, keys: Sequence[bytes]) -> None:
        """Ask the store for those of `keys` that a cache was believed about; compute them again."""
        if self._believed.isdisjoint(keys):
            return
        asked = list(self._believed.intersection(keys))
        self._believed.difference_update(asked)
        befores = dict(zip(asked, self._read(asked, believing=False), strict=True))
        again = [key for key in asked if key not in self._applied]
        for key in self._applied.intersection(asked):
            self._values.pop(key, None)
        self._values.update(self._computed(again, [befores[key] for key in again]))

    def _read(self, keys: Sequence[bytes], believing: bool) -> list[Any]:
        """Return the values of `keys` before this batch, and remember them."""
        if not believing:
            doubt(self._store, keys)
        stored = self._path.read(keys)
        read = self._rules.read(stored, self.record)
        self._applied.difference_update(keys)
        self._applied.update(self._rules.applied(keys, stored, self.record))
        self._befores.update(zip(keys, read, strict=True))
        return read

    def _currents(self, keys: Sequence[bytes], believing: bool = False) -> list[Any]:
        """Return the values that updates of `keys` start from, each key read once an attempt."""
        self._settle(keys)
        befores, values = self._befores, self._values
        asked = [key for key in dict.fromkeys(keys) if key not in befores]
        if asked:
            read = self._read(asked, believing)
            if len(asked) == len(keys):
                return read
        return [values[key] if key in values else befores[key] for key in keys]

    def _settle(self, keys: Sequence[bytes]) -> None:
        """Turn amounts left to the store into ordinary updates, for keys used otherwise too."""
        if self._adder is None or self._adds.keys().isdisjoint(keys):
            return
        amounts = {key: self._adds.pop(key) for key in set(keys) if key in self._adds}
        self.combine(list(amounts), list(amounts.values()), self._adder)


def _combined(currents: Sequence[Any], partials: Sequence[Any], combiner: Combiner) -> list[Any]:
    # What adds is called for plain numbers only where they leave the 64 bits.
    if combiner.adds and set(map(type, currents)) | set(map(type, partials)) == {int}:
        values = list(map(add, currents, partials))
        if min(values) >= -(2**63) and max(values) < 2**63:
            return values
    combine = combiner.combine
    return [
        partial if current is None else combine(current, partial)
        for current, partial in zip(currents, partials, strict=True)
    ]


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


def _chunks(keys: list[bytes]) -> Iterator[list[bytes]]:
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]


def _check_lengths(keys: Sequence[Any], others: Sequence[Any]) -> None:
    if len(keys) != len(others):
        raise StateError(f"{len(keys)} keys came with {len(others)} values; give one for each key")


def _check_longs(keys: Sequence[bytes], values: Sequence[Any]) -> None:
    if set(map(type, values)) == {int} and min(values) >= -(2**63) and max(values) < 2**63:
        return
    for key, value in zip(keys, values, strict=True):
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise LongOverflowError(f"the value of key {decode_key(key)!r}", value)
