"""How entries are kept in memory."""

from __future__ import annotations

import gc
from uuid import uuid4

from trident.backends.memory import MemoryMap
from trident.states.kinds.opaque import OpaqueEntries
from trident.states.values import OpaqueValue

KEYS = [b"cat", b"dog"]
COLUMNS = OpaqueEntries([3, 3], [0, 0], [7, 8], [4, None])
VALUES = [OpaqueValue(3, 0, 7, 4), OpaqueValue(3, 0, 8, None)]


def test_the_garbage_collector_leaves_opaque_entries_alone() -> None:
    entries = MemoryMap(uuid4().hex)
    entries.multiPut(KEYS, COLUMNS)
    gc.collect()
    assert not any(map(gc.is_tracked, entries._database.rows.values()))


def test_opaque_entries_are_the_same_however_they_are_written() -> None:
    for values in (COLUMNS, VALUES):
        for size in (0, 10):
            entries = MemoryMap(uuid4().hex, size)
            entries.multiPut(KEYS, values)
            for absent in (1, 1000):
                keys = [*KEYS, *[b"none"] * absent]
                assert list(entries.multiGet(keys)) == [*VALUES, *[None] * absent]
            assert entries.entries() == list(zip(KEYS, VALUES, strict=True))
            assert entries.occupant() == "the entry b'cat'"


def test_entries_of_another_kind_may_join_opaque_ones() -> None:
    entries = MemoryMap(uuid4().hex)
    entries.multiPut(KEYS, COLUMNS)
    entries.multiPut([b"cat", b"eel"], [("a", "tuple"), 5])
    entries.multiPut([b"dog"], COLUMNS[:1])
    assert list(entries.multiGet([*KEYS, b"eel"])) == [("a", "tuple"), VALUES[0], 5]
