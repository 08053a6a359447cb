"""The updates of one attempt: it remembers them, and writes each key once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import add
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
from trident.states.maps.pending import PendingUpdates
from trident.states.table.table import Table
from trident.states.updaters import Combiner, CombinerValueUpdater, check_addable
from trident.states.values import IMMUTABLE, Versioned, own_copy

Update = Callable[[Any], Any]

_CHUNK = 2**16
_CONFLICTS = 16


class MapAttempt:
    """One attempt's updates of a map; all keys are encoded."""

    def __init__(self, record: ControlRecord, table: Table, kind: Kind) -> None:
        self.record = record
        self._cut = Cut.before(record)
        self._moment = self._cut.moment
        self._untils: dict[bytes | None, datetime] = {}  # None stands for all other keys
        self._times: dict[bytes, datetime] = {}
        self._table = table
        self._kind = kind
        self._pending = PendingUpdates()
        self._applied: set[bytes] = set()
        self._calls: list[tuple[Sequence[bytes], Sequence[Update]]] = []
        self._amounts: dict[bytes, Any] = {}  # the store adds them at the flush
        self._amounts_combiner: Combiner | None = None
        table.begin(record)

    def keys(self) -> list[bytes]:
        """Return the keys with pending updates."""
        return [*self._pending.updated_keys(), *self._amounts]

    def expire(self, times: Mapping[bytes | None, int], after: int) -> None:
        """Let the new values of keys expire, each `after` its time; None is for all other keys."""
        untils, moments, begun = self._untils, self._times, self._moment
        for key, time in times.items():
            until, moment = moment_at(time + after), moment_at(time)
            untils[key] = max(until, untils.get(key, until))
            if key is not None and moment > begun:
                moments[key] = max(moment, moments.get(key, moment))

    def _with_moments(
        self, keys: Sequence[bytes], values: Sequence[Any], befores: Sequence[Any]
    ) -> Sequence[Any]:
        """Return new values of keys, each with the moment at which it expires, if it does.

        The moment is never before that of the value before. So a late write of an earlier attempt
        has expired too, if the store shows it.
        """
        if not self._untils:
            return values
        of_others = self._untils.get(None)
        made = []
        for key, value, before in zip(keys, values, befores, strict=True):
            until = self._untils.get(key, of_others)
            if until is not None and value is not None and type(value) is not KeepUntil:
                if type(before) is KeepUntil:
                    until = max(until, before.until)
                value = KeepUntil(value, until)
            made.append(value)
        return made

    def _alive(self, values: Sequence[Any], keys: Sequence[bytes] = ()) -> Sequence[Any]:
        """Return the values that have not expired, else None; give the keys of an update."""
        made = alive(values, self._moment)
        if made is not values and Versioned in set(map(type, values)):
            raise StateError(
                f"{self._table.where or 'the state'} holds values with a schema_version, which is "
                "not declared: run the code that wrote them, or declare it with its upgrade()"
            )
        if not (keys and self._times):
            return made
        times = (self._times.get(key, self._moment) for key in keys)
        return list(map(alive_at, values, times))

    def get(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the values of `keys`, with pending updates."""
        self._combine_amounts(keys)
        missing = self._pending.missing(keys)
        found = dict(zip(missing, self._read(missing)[1], strict=True)) if missing else {}
        known = [key for key in dict.fromkeys(keys) if key not in found]
        found.update(zip(known, self._pending.currents(known), strict=True))
        return list(self._alive(list(map(found.__getitem__, keys))))

    def update(self, keys: Sequence[bytes], updates: Sequence[Update]) -> list[Any]:
        """Update each key by its function, a repeated key in order; return the new values."""
        _check_lengths(keys, updates)
        currents = self._currents(keys)
        starts = self._alive(currents, keys)
        updated: dict[bytes, Any] = {}
        values = []
        for key, current, start, update in zip(keys, currents, starts, updates, strict=True):
            if key in self._applied:
                values.append(current)
                continue
            if key in updated:
                [start] = self._alive([updated[key]])
            value = updated[key] = update(own_copy(start))
            values.append(value)
        _check_longs(keys, values)
        self._pending.put(list(updated), list(updated.values()))
        self._keep_call(keys, updates)
        return list(self._alive(values))

    def put(self, keys: Sequence[bytes], updates: Sequence[Update]) -> None:
        """Update each key, even if the store has this batch's update of it; return nothing."""
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
        values = _combine(keys, currents, partials, combiner)
        self._pending.put(keys, values)
        self._keep_call(keys, _CombiningUpdates(combiner, partials))
        return values

    def _keep_call(self, keys: Sequence[bytes], updates: Sequence[Update]) -> None:
        """Keep a call, in case the flush has to repeat it for refused entries."""
        if self._table.refuses:
            self._calls.append((keys, updates))

    def fold(self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner) -> None:
        """Combine a partial result into each key; at the flush, if the store can add."""
        _check_lengths(keys, partials)
        # No store can add to a value with its moment, and `reached` says that there may be some.
        adds = self._table.adds and combiner.adds and self.record.reached is None
        adds = adds and set(map(type, partials)) <= {int, float}
        if not adds or self._pending.has_any(keys):
            self.combine(keys, partials, combiner)
            return
        self._amounts_combiner = combiner
        amounts = dict(zip(keys, partials, strict=True))
        if len(amounts) < len(keys) or not self._amounts.keys().isdisjoint(amounts):
            sums = {key: self._amounts[key] for key in amounts if key in self._amounts}
            for key, partial in zip(keys, partials, strict=True):
                sums[key] = combiner.combine(sums[key], partial) if key in sums else partial
            amounts = sums
        _check_longs(list(amounts), list(amounts.values()))
        self._amounts.update(amounts)

    def flush(self, tombstones: set[bytes]) -> set[bytes]:
        """Write all updates, and remove `tombstones` of earlier batches from the store.

        Returns the keys that this attempt has removed: the next tombstones.
        """
        self._remove(tombstones)
        added, amounts = list(self._amounts), list(self._amounts.values())
        for start in range(0, len(added), _CHUNK):
            self._table.add(added[start : start + _CHUNK], amounts[start : start + _CHUNK])
        for keys, values, befores in self._pending.chunks(_CHUNK):
            made = self._with_moments(keys, values, befores)
            self._write(keys, self._kind.write(made, befores, self.record))
        return self._pending.removed_keys()

    def _write(self, keys: Sequence[bytes], entries: Sequence[Any]) -> None:
        """Write entries; compute refused ones again, which somebody else has changed."""
        for _ in range(_CONFLICTS):
            keys = self._table.write(keys, entries)
            if not keys:
                return
            entries = self._compute_again(keys)
        raise StateUnavailableError(
            self._table.where or "a store of conditional writes",
            f"{len(keys)} entries were changed by somebody else {_CONFLICTS} times in a row",
            "Is another program writing the same keys?",
        )

    def _compute_again(self, keys: Sequence[bytes]) -> Sequence[Any]:
        """Return the entries of `keys`, computed from the entries that are stored now."""
        stored, befores = self._read(keys)
        applied = set(self._kind.applied(keys, stored, self.record))
        values = dict(zip(keys, befores, strict=True))
        for called, updates in self._calls:
            for position, key in enumerate(called):
                if key in values:
                    [start] = self._alive([values[key]], [key])
                    values[key] = updates[position](own_copy(start))
        _check_longs(keys, list(values.values()))
        made = self._with_moments(keys, list(values.values()), befores)
        entries = self._kind.write(made, befores, self.record)
        return [
            old if key in applied else new
            for key, old, new in zip(keys, stored, entries, strict=True)
        ]

    def _remove(self, tombstones: set[bytes]) -> None:
        """Remove tombstones from the store, except of keys that this attempt writes.

        A second task of this attempt may have written such a key already. Other keys are safe:
        in each batch a key belongs to one task.
        """
        if not (tombstones and self._table.removes):
            return
        positions = self._pending.positions
        keys = [key for key in tombstones if key not in positions and key not in self._amounts]
        if keys:
            entries = zip(keys, self._table.read(keys), strict=True)
            dead = [key for key, entry in entries if self._kind.is_dead(entry, self.record)]
            if dead:
                self._table.remove(dead)

    def _currents(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the values from which updates of `keys` start; each key is read once."""
        self._combine_amounts(keys)
        missing = self._pending.missing(keys)
        if missing:
            stored, read = self._read(missing)
            self._applied.update(self._kind.applied(missing, stored, self.record))
            self._pending.add(missing, read)
            if len(missing) == len(keys):
                return read
        return self._pending.currents(keys)

    def _read(self, keys: Sequence[bytes]) -> tuple[Sequence[Any], list[Any]]:
        """Return the entries of `keys`, and their values as of the batch before."""
        stored = self._table.read(keys)
        try:
            return stored, self._kind.read(stored, self._cut)
        except BatchMovedOn as later:
            raise StaleBatchError(self.record.token, *later.args) from None

    def _combine_amounts(self, keys: Iterable[bytes]) -> None:
        """Combine the amounts of keys here, as another call needs or updates their values."""
        if self._amounts_combiner is None or self._amounts.keys().isdisjoint(keys):
            return
        amounts = {key: self._amounts.pop(key) for key in set(keys) if key in self._amounts}
        self.combine(list(amounts), list(amounts.values()), self._amounts_combiner)


def _combine(
    keys: Sequence[bytes], currents: Sequence[Any], partials: Sequence[Any], combiner: Combiner
) -> list[Any]:
    # Integers are added without a call for each, unless a sum leaves the 64 bits.
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
    """The updates that combine partial results; each is made when it is used."""

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
