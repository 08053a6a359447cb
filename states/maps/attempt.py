"""The updates of one attempt: remembered, then written once a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import compress, islice, repeat
from operator import add, is_, is_not
from typing import Any

from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.errors import (
    LongOverflowError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
)
from trident.states.expiry import KeepUntil, alive, alive_at, moment_at
from trident.states.keys import decode_key
from trident.states.kinds.kind import Kind
from trident.states.table.table import Table
from trident.states.updaters import Combiner, CombinerValueUpdater, check_addable
from trident.states.values import IMMUTABLE, Versioned, own

Update = Callable[[Any], Any]

_CHUNK = 2**16
_CONFLICTS = 16
_UNTOUCHED: Any = object()
"""The new value of a key that was read, and not updated."""


class MapAttempt:
    """What one attempt of a batch has done to a map so far; all keys are encoded."""

    def __init__(self, record: ControlRecord, table: Table, kind: Kind) -> None:
        self.record = record
        self._cut = Cut.before(record)
        self._moment = self._cut.moment
        self._untils: dict[bytes | None, datetime] = {}  # None: of all other keys
        self._times: dict[bytes, datetime] = {}
        self._table = table
        self._kind = kind
        self._pending = PendingUpdates()
        self._applied: set[bytes] = set()
        self._calls: list[tuple[Sequence[bytes], Sequence[Update]]] = []
        self._folds: dict[bytes, Any] = {}  # what the store adds at the flush
        self._folder: Combiner | None = None
        table.begin(record)

    def keys(self) -> list[bytes]:
        """Return the keys with something pending."""
        return [*self._pending.touched(), *self._folds]

    def expire(self, times: Mapping[bytes | None, int], after: int) -> None:
        """Let what is written of keys, each at a time, expire; None stands for all other keys."""
        untils, moments, begun = self._untils, self._times, self._moment
        for key, time in times.items():
            until, moment = moment_at(time + after), moment_at(time)
            untils[key] = max(until, untils.get(key, until))
            if key is not None and moment > begun:
                moments[key] = max(moment, moments.get(key, moment))

    def _dated(
        self, keys: Sequence[bytes], values: Sequence[Any], befores: Sequence[Any]
    ) -> Sequence[Any]:
        """Return new values of keys, each with the moment at which it expires, if it does.

        That is never before the moment of the value before it, so that a late write of an earlier
        attempt, if the store lets it show, has expired as well.
        """
        if not self._untils:
            return values
        of_others = self._untils.get(None)
        dated = []
        for key, value, before in zip(keys, values, befores, strict=True):
            until = self._untils.get(key, of_others)
            if until is not None and value is not None and type(value) is not KeepUntil:
                if type(before) is KeepUntil:
                    until = max(until, before.until)
                value = KeepUntil(value, until)
            dated.append(value)
        return dated

    def _alive(self, values: Sequence[Any], keys: Sequence[bytes] = ()) -> Sequence[Any]:
        """Return the values that there are, of keys when they are updated."""
        left = alive(values, self._moment)
        if left is not values and Versioned in set(map(type, values)):
            raise StateError(
                f"{self._table.where or 'the state'} holds values with a schema_version, which is "
                "not declared: run the code that wrote them, or declare it with its upgrade()"
            )
        if not (keys and self._times):
            return left
        times = (self._times.get(key, self._moment) for key in keys)
        return list(map(alive_at, values, times))

    def get(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the values of `keys` with what is pending."""
        self._settle(keys)
        asked = self._pending.unknown(keys)
        found = dict(zip(asked, self._read(asked)[1], strict=True)) if asked else {}
        known = [key for key in dict.fromkeys(keys) if key not in found]
        found.update(zip(known, self._pending.currents(known), strict=True))
        return list(self._alive(list(map(found.__getitem__, keys))))

    def update(self, keys: Sequence[bytes], updates: Sequence[Update]) -> list[Any]:
        """Update each key by its function, a repeated key in order; return the new values."""
        _check_lengths(keys, updates)
        currents = self._currents(keys)
        starts = self._alive(currents, keys)
        fresh: dict[bytes, Any] = {}
        values = []
        for key, current, start, update in zip(keys, currents, starts, updates, strict=True):
            if key in self._applied:
                values.append(current)
                continue
            if key in fresh:
                [start] = self._alive([fresh[key]])
            value = fresh[key] = update(own(start))
            values.append(value)
        _check_longs(keys, values)
        self._pending.put(list(fresh), list(fresh.values()))
        self._remember(keys, updates)
        return list(self._alive(values))

    def put(self, keys: Sequence[bytes], updates: Sequence[Update]) -> None:
        """Update each key, also one to which this batch was applied already; return nothing."""
        _check_lengths(keys, updates)
        self._currents(keys)
        self._applied.difference_update(keys)
        self.update(keys, updates)

    def combine(
        self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner
    ) -> list[Any]:
        """Combine a partial result into each key and return the new values."""
        _check_lengths(keys, partials)
        currents = self._alive(self._currents(keys), keys)
        if combiner.adds:
            check_addable(keys, currents)
        if (
            len(set(keys)) < len(keys)
            or not self._applied.isdisjoint(keys)
            or not IMMUTABLE.issuperset(map(type, currents))
        ):
            return self.update(keys, _CombiningUpdates(combiner, partials))
        values = _combined(keys, currents, partials, combiner)
        self._pending.put(keys, values)
        self._remember(keys, _CombiningUpdates(combiner, partials))
        return values

    def _remember(self, keys: Sequence[bytes], updates: Sequence[Update]) -> None:
        """Keep a call, in case the flush has to compute entries that were refused again."""
        if self._table.refuses:
            self._calls.append((keys, updates))

    def fold(self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner) -> None:
        """Combine without an answer: at the flush, where the store adds by itself."""
        _check_lengths(keys, partials)
        # Where entries have ever expired, a store could not add to those that say when they do.
        adds = self._table.adds and combiner.adds and self.record.reached is None
        adds = adds and set(map(type, partials)) <= {int, float}
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
        """Write everything, removing `dead` tombstones; return the keys that were removed."""
        self._remove(dead)
        folded, partials = list(self._folds), list(self._folds.values())
        for start in range(0, len(folded), _CHUNK):
            self._table.add(folded[start : start + _CHUNK], partials[start : start + _CHUNK])
        for keys, values, befores in self._pending.chunks(_CHUNK):
            dated = self._dated(keys, values, befores)
            self._write(keys, self._kind.write(dated, befores, self.record))
        return self._pending.removed()

    def _write(self, keys: Sequence[bytes], entries: Sequence[Any]) -> None:
        """Write entries; compute those anew that are refused because others changed them."""
        for _ in range(_CONFLICTS):
            keys = self._table.write(keys, entries)
            if not keys:
                return
            entries = self._redo(keys)
        raise StateUnavailableError(
            self._table.where or "a store of conditional writes",
            f"{len(keys)} entries were changed by somebody else {_CONFLICTS} times in a row",
            "Is another program writing the same keys?",
        )

    def _redo(self, keys: Sequence[bytes]) -> Sequence[Any]:
        """Return the entries of `keys` computed from what is stored now."""
        stored, befores = self._read(keys)
        applied = set(self._kind.applied(keys, stored, self.record))
        values = dict(zip(keys, befores, strict=True))
        for called, updates in self._calls:
            for position, key in enumerate(called):
                if key in values:
                    [given] = self._alive([values[key]], [key])
                    values[key] = updates[position](own(given))
        _check_longs(keys, list(values.values()))
        dated = self._dated(keys, list(values.values()), befores)
        entries = self._kind.write(dated, befores, self.record)
        return [
            old if key in applied else new
            for key, old, new in zip(keys, stored, entries, strict=True)
        ]

    def _remove(self, dead: set[bytes]) -> None:
        """Remove tombstones from the store, but none of a key that this attempt writes.

        A second task of this attempt may have written that key already. The other keys are safe:
        a key belongs to one task of a batch, and to this one.
        """
        if not (dead and self._table.removes):
            return
        positions = self._pending.positions
        keys = [key for key in dead if key not in positions and key not in self._folds]
        if keys:
            entries = zip(keys, self._table.read(keys), strict=True)
            gone = [key for key, entry in entries if self._kind.is_dead(entry, self.record)]
            if gone:
                self._table.remove(gone)

    def _currents(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the values that updates of `keys` start from, each key read once an attempt."""
        self._settle(keys)
        asked = self._pending.unknown(keys)
        if asked:
            stored, read = self._read(asked)
            self._applied.update(self._kind.applied(asked, stored, self.record))
            self._pending.add(asked, read)
            if len(asked) == len(keys):
                return read
        return self._pending.currents(keys)

    def _read(self, keys: Sequence[bytes]) -> tuple[Sequence[Any], list[Any]]:
        """Return the entries of `keys`, and the values that this batch finds in them."""
        stored = self._table.read(keys)
        try:
            return stored, self._kind.read(stored, self._cut)
        except BatchMovedOn as later:
            raise StaleBatchError(self.record.token, *later.args) from None

    def _settle(self, keys: Iterable[bytes]) -> None:
        """Turn folds into ordinary updates, for keys that another call reads or updates as well."""
        if self._folder is None or self._folds.keys().isdisjoint(keys):
            return
        folds = {key: self._folds.pop(key) for key in set(keys) if key in self._folds}
        self.combine(list(folds), list(folds.values()), self._folder)


def _combined(
    keys: Sequence[bytes], currents: Sequence[Any], partials: Sequence[Any], combiner: Combiner
) -> list[Any]:
    # Integers are added right here, but for those that leave the 64 bits.
    if combiner.adds and set(map(type, currents)) | set(map(type, partials)) == {int}:
        values = list(map(add, currents, partials))
        if min(values) >= -(2**63) and max(values) < 2**63:
            return values
    combine = combiner.combine
    values = [
        partial if current is None else combine(current, partial)
        for current, partial in zip(currents, partials, strict=True)
    ]
    _check_longs(keys, values)
    return values


class _CombiningUpdates(Sequence[Update]):
    """The updates that combine partial results; each is made when it is asked for."""

    def __init__(self, combiner: Combiner, partials: Sequence[Any]) -> None:
        self._combiner = combiner
        self._partials = partials

    def __len__(self) -> int:
        return len(self._partials)

    def __getitem__(self, position: Any) -> Any:
        return CombinerValueUpdater(self._combiner, self._partials[position]).update


def _check_lengths(keys: Sequence[Any], others: Sequence[Any]) -> None:
    if len(keys) != len(others):
        raise StateError(f"{len(keys)} keys came with {len(others)} values; give one for each key")


def _check_longs(keys: Sequence[bytes], values: Sequence[Any]) -> None:
    """Raise for an integer of more than 64 bits."""
    longs = [value for value in values if type(value) is int]
    if not longs or (min(longs) >= -(2**63) and max(longs) < 2**63):
        return
    for key, value in zip(keys, values, strict=True):
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise LongOverflowError(f"the value of key {decode_key(key)!r}", value)


class PendingUpdates:
    """The keys that were read, each with its value before the batch and its new value.

    Most batches use each key in one call only. So the position of each key is noted only when a
    second call may use it again.
    """

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

    def knows(self, keys: Sequence[bytes]) -> bool:
        """Return whether any of `keys` was read."""
        return bool(self._keys) and not self.positions.keys().isdisjoint(keys)

    def unknown(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of `keys` that were not read yet, each once."""
        if not self._keys:
            return list(dict.fromkeys(keys))
        positions = self.positions
        return [key for key in dict.fromkeys(keys) if key not in positions]

    def add(self, keys: Sequence[bytes], befores: Sequence[Any]) -> None:
        """Add keys that were not read yet, and the values they had before the batch."""
        self._keys += keys
        self._befores += befores
        self._values += repeat(_UNTOUCHED, len(keys))

    def put(self, keys: Sequence[bytes], values: Sequence[Any]) -> None:
        """Keep new values for different keys, all of which were read."""
        if self._keys[-len(keys) :] == keys:
            self._values[-len(keys) :] = values
            return
        for position, value in zip(map(self.positions.__getitem__, keys), values, strict=True):
            self._values[position] = value

    def currents(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the newest values of keys, all of which were read."""
        positions, values, befores = self.positions, self._values, self._befores
        return [
            befores[position] if values[position] is _UNTOUCHED else values[position]
            for position in map(positions.__getitem__, keys)
        ]

    def touched(self) -> list[bytes]:
        return list(compress(self._keys, self._are_touched()))

    def removed(self) -> set[bytes]:
        """Return the keys whose new value is None."""
        return set(compress(self._keys, map(is_, self._values, repeat(None))))

    def chunks(self, size: int) -> Iterator[tuple[Sequence[bytes], Sequence[Any], Sequence[Any]]]:
        """Return the touched keys, their new values and those before, `size` at a time."""
        columns: tuple[list[Any], ...] = self._keys, self._values, self._befores
        if not all(self._are_touched()):
            columns = tuple(list(compress(column, self._are_touched())) for column in columns)
        for start in range(0, len(columns[0]), size):
            keys, values, befores = (column[start : start + size] for column in columns)
            yield keys, values, befores

    def _are_touched(self) -> Iterator[bool]:
        return map(is_not, self._values, repeat(_UNTOUCHED))
