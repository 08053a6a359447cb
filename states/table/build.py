"""Puts together what lies between a map state and its store; nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trident.states.backing_map import Ability, Codec, IBackingMap, abilities
from trident.states.kinds.kind import Kind
from trident.states.schema import ValueSchema
from trident.states.serializers import Serializer
from trident.states.table.adapters import (
    AddingTable,
    CheckedTable,
    ConditionalTable,
    FencedTable,
    SerializedTable,
    VersionedTable,
)
from trident.states.table.table import Counts, LayeredMap, Table
from trident.states.table.upgrading import UpgradingTable
from trident.states.values import StateType


@dataclass(frozen=True)
class Tables:
    """What a map state reads and writes through; `reading`, for others, passes any cache by."""

    writing: Table
    reading: Table
    counts: Counts


def build(
    backing: IBackingMap | LayeredMap,
    kind: Kind,
    serializer: Serializer,
    schema: ValueSchema | None = None,
) -> Tables:
    """Return the tables of a state over a map, and the layers that it is wrapped in."""
    tables = layered(backing, kind)
    in_bytes = layers(backing)[1].codec is Codec.BYTES

    def over(table: Table) -> Table:
        if in_bytes:
            table = SerializedTable(table, kind, serializer)
        return table if schema is None else UpgradingTable(table, kind, schema)

    return Tables(over(tables.writing), over(tables.reading), tables.counts)


def layered(backing: IBackingMap | LayeredMap, kind: Kind) -> Tables:
    """Return the same with entries as the store exchanges them."""
    wrapping, store = layers(backing)
    counts = Counts()
    own = adapter(store, kind, counts)
    writing: Table = own
    reading: Table = CheckedTable(store, counts)
    for layer in reversed(wrapping):
        if layer.for_readers:
            reading = layer.over(reading)
        if layer.for_readers or isinstance(own, FencedTable):
            writing = layer.over(writing)
    return Tables(writing, reading, counts)


def layers(backing: IBackingMap | LayeredMap) -> tuple[Sequence[LayeredMap], IBackingMap]:
    """Return the layers that a map is wrapped in, the outermost first, and the map itself."""
    found: list[LayeredMap] = []
    while isinstance(backing, LayeredMap):
        found.append(backing)
        backing = backing.inner
    return found, backing


def adapter(store: IBackingMap, kind: Kind, counts: Counts) -> CheckedTable:
    """Return the strongest adapter that a store is able to be used by, for entries of `kind`."""
    able = abilities(store)
    if Ability.FENCED in able:
        # Without the general fenced write a store could not take the other updates so.
        adds = Ability.ADD in able and kind.type is StateType.OPAQUE
        return AddingTable(store, counts) if adds else FencedTable(store, counts)
    if Ability.ENTRY in able:
        return ConditionalTable(store, counts)
    if Ability.VERSIONED in able:
        return VersionedTable(store, counts)
    return CheckedTable(store, counts)
