"""A task: reads the keys of its partition, updates them, writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.protocol.model.rules import Rules, Setup
from tests.protocol.model.shared import (
    Cell,
    Record,
    Stale,
    Steps,
    Store,
    Stored,
    Unavailable,
    Update,
    Value,
)


@dataclass(frozen=True)
class Operation:
    """One update of a key: append `update`, or remove the key."""

    key: str
    update: Update
    removes: bool

    def apply(self, value: Value) -> Value:
        return None if self.removes else (*(value or ()), self.update)


@dataclass(frozen=True, eq=False)
class Task:
    """What one task does; a duplicate of it does the same."""

    setup: Setup
    rules: Rules
    record: Record
    store: Store
    cache: dict[str, Stored]
    operations: Sequence[Operation]
    partition: Sequence[str]
    known: Mapping[str, Stored]
    """What the driver has read before the batch began; empty where tasks read."""
    alive: Callable[[Value], Value]
    """Gives a value that has not expired, or None."""

    def run(self) -> Steps:
        if self.setup.ability == "fenced" and self.setup.kind == "opaque":
            yield None
            self._drop_tombstones()
        if self.rules.once:
            yield from self._update(self.operations)
        else:
            for operation in self.operations:
                yield from self._update([operation])

    def _update(self, operations: Sequence[Operation]) -> Steps:
        keys = list(dict.fromkeys(operation.key for operation in operations))
        yield None
        read = {key: self._read(key) for key in keys}
        for key in keys:
            mine = [operation for operation in operations if operation.key == key]
            yield from self._write(key, read[key], mine)

    def _read(self, key: str) -> Stored:
        if key in self.known:
            return self.known[key]
        if key in self.cache and self._valid(self.cache[key][0]):
            return self.cache[key]
        if self.setup.cached:
            self.cache[key] = self.store.get(key)
        return self.store.get(key)

    def _valid(self, cell: Cell | None) -> bool:
        if self.rules.cache_of_earlier_batches and cell and cell.txid >= self.record.token[0]:
            return False
        alone = self.setup.hosted == "driver" or self.setup.ability == "entry"
        return alone or not self.rules.cache_validity

    def _write(self, key: str, read: Stored, operations: Sequence[Operation]) -> Steps:
        while True:
            cell = self._updated(read[0], operations)
            if cell is None:
                return
            if not self.rules.write_then_cache and self.setup.cached:
                self.cache[key] = (cell, read[1])
            yield None
            if self.setup.ability == "none" and self.rules.checked:
                if self.store.control != self.record:
                    raise Stale
                if self.setup.gap:
                    yield None
            written = self.store.write(key, cell, self.record, read[1])
            if written and self.setup.cached:
                self.cache[key] = self.store.get(key)
            if written and not self.rules.tombstones and cell.curr is None:
                self.store.drop(key)
            try:
                yield None
            except Unavailable:
                if self.rules.write_then_cache:
                    self.cache.pop(key, None)
                raise
            if written:
                return
            if self.rules.write_then_cache:
                self.cache.pop(key, None)
            if self.setup.ability == "fenced":
                raise Stale
            if not self.rules.recompute:
                return
            read = self.store.get(key)

    def _updated(self, stored: Cell | None, operations: Sequence[Operation]) -> Cell | None:
        """The cell to write, None where nothing is to be written."""
        txid, attempt = self.record.token
        if self.setup.kind == "transactional":
            if stored and stored.txid > txid and self.rules.overtaken:
                raise Stale
            if stored and stored.txid == txid and self.rules.applied:
                return None
            value = stored.curr if stored else None
            for operation in operations:
                value = operation.apply(value)
            return Cell(txid, attempt, value, None)
        before = self._committed(stored)
        value = self.alive(before)
        for operation in operations:
            value = operation.apply(value)
        kept = before if self.rules.committed_prev else stored.curr if stored else None
        return Cell(txid, attempt, value, kept)

    def _committed(self, stored: Cell | None) -> Value:
        if stored is None:
            return None
        if self.rules.overtaken and (stored.txid, stored.attempt) > self.record.token:
            raise Stale
        if stored.txid == self.record.token[0]:
            return stored.prev
        if not self.rules.attempts or self.record.counts(stored.txid, stored.attempt):
            return stored.curr
        return stored.prev

    def _drop_tombstones(self) -> None:
        """One atomic step: removes the committed tombstones of this task's partition."""
        if not self.store.admits(self.record):
            return
        for key in self.partition:
            cell, _ = self.store.get(key)
            if (
                cell
                and cell.curr is None
                and cell.txid <= self.record.committed
                and self.record.counts(cell.txid, cell.attempt)
            ):
                self.store.drop(key)
                self.cache.pop(key, None)
