"""Builds the tables of a map state: the adapter of its store, and the layers over it."""

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
    """The tables of a map state: `writing` for batches, `reading` without a cache for others."""

    writing: Table
    reading: Table
    counts: Counts


def build(
    backing: IBackingMap | LayeredMap,
    kind: Kind,
    serializer: Serializer,
    schema: ValueSchema | None = None,
) -> Tables:
    """Return the tables of a state over a map and its layers."""
    tables = layered(backing, kind)
    in_bytes = layers(backing)[1].codec is Codec.BYTES

    def over(table: Table) -> Table:
        if in_bytes:
            table = SerializedTable(table, kind, serializer)
        return table if schema is None else UpgradingTable(table, kind, schema)

    return Tables(over(tables.writing), over(tables.reading), tables.counts)


def layered(backing: IBackingMap | LayeredMap, kind: Kind) -> Tables:
    """Return these tables without a serializer: with entries in the store's form."""
    wrapping, store = layers(backing)
    counts = Counts()
    lowest = adapter(store, kind, counts)
    writing: Table = lowest
    reading: Table = CheckedTable(store, counts)
    for layer in reversed(wrapping):
        if layer.for_readers:
            reading = layer.over(reading)
        if layer.for_readers or isinstance(lowest, FencedTable):
            writing = layer.over(writing)
    return Tables(writing, reading, counts)


def layers(backing: IBackingMap | LayeredMap) -> tuple[Sequence[LayeredMap], IBackingMap]:
    """Return the layers over a map, the outermost first, and the map itself."""
    found: list[LayeredMap] = []
    while isinstance(backing, LayeredMap):
        found.append(backing)
        backing = backing.inner
    return found, backing


def adapter(store: IBackingMap, kind: Kind, counts: Counts) -> CheckedTable:
    """Return the strongest adapter that a store can have, for entries of `kind`."""
    able = abilities(store)
    if Ability.FENCED in able:
        # Adding alone is not enough: the other updates need the fenced write.
        adds = Ability.ADD in able and kind.type is StateType.OPAQUE
        return AddingTable(store, counts) if adds else FencedTable(store, counts)
    if Ability.ENTRY in able:
        return ConditionalTable(store, counts)
    if Ability.VERSIONED in able:
        return VersionedTable(store, counts)
    return CheckedTable(store, counts)
