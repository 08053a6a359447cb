"""Puts together what lies between a map state and its store; nothing else does."""

from __future__ import annotations

from typing import NamedTuple

from trident.states.backing_map import Ability, Codec, IBackingMap, WrappedMap, abilities
from trident.states.errors import StateError
from trident.states.kinds.kind import Kind
from trident.states.serializers import Serializer
from trident.states.table.adapters import (
    CheckedTable,
    ConditionalTable,
    FencedTable,
    VersionedTable,
)
from trident.states.table.adding import AddingTable
from trident.states.table.cache import CachedMap
from trident.states.table.fields import FieldsTable
from trident.states.table.layered import LayeredMap, layers
from trident.states.table.serialized import SerializedTable
from trident.states.table.table import Table
from trident.states.values import StateType


class Tables(NamedTuple):
    """What a map state reads and writes its entries through.

    Parameters
    ----------
    writing : Table
        For the batch that updates the state.
    reading : Table
        For readers outside the batch, who must not find in a cache what is not committed yet. It
        stands on the two methods that every store has, and is never written.
    """

    writing: Table
    reading: Table


def build(backing: IBackingMap, kind: Kind, serializer: Serializer) -> Tables:
    """Return the tables of a state over a map, and the layers that it is wrapped in.

    Parameters
    ----------
    backing : IBackingMap
        The map. Its layers must be the outermost: what lies below another wrapper is never asked.
    kind : Kind
        What entries are.
    serializer : Serializer
        Makes bytes of them, for stores that exchange bytes.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import CachedMap, JSONSerializer, MicroBatchMap
    >>> from trident.states.kinds import OPAQUE
    >>> backing = CachedMap(MicroBatchMap(MemoryMap("built"), max_put=100), 1000)
    >>> writing, reading = build(backing, OPAQUE, JSONSerializer())
    >>> type(writing).__name__, type(reading).__name__
    ('CachedTable', 'SplitTable')
    """
    tables = layered(backing, kind)
    if backing.codec is not Codec.BYTES:
        return tables
    return Tables(*(SerializedTable(table, kind, serializer) for table in tables))


def layered(backing: IBackingMap, kind: Kind) -> Tables:
    """Return the same with entries as the store exchanges them."""
    wrapping, store = layers(backing)
    _check_outermost(store)
    own = adapter(store, kind)
    fenced = isinstance(own, FencedTable)
    writing, reading = _encoded(own, store), _encoded(CheckedTable(store), store)
    for layer in reversed(wrapping):
        is_cache = isinstance(layer, CachedMap)
        writing = layer.over(writing) if fenced or not is_cache else writing
        reading = reading if is_cache else layer.over(reading)
    return Tables(writing, reading)


def adapter(store: IBackingMap, kind: Kind) -> CheckedTable:
    """Return the strongest adapter that a store is able to be used by, for entries of `kind`."""
    able = abilities(store)
    if Ability.FENCED in able:
        # Without the general fenced write a store could not take the other updates so.
        adds = Ability.ADD in able and kind.type is StateType.OPAQUE
        return (AddingTable if adds else FencedTable)(store, Ability.REMOVE in able)
    if Ability.ENTRY in able:
        return ConditionalTable(store)
    if Ability.VERSIONED in able:
        return VersionedTable(store)
    return CheckedTable(store)


def _encoded(table: Table, store: IBackingMap) -> Table:
    return FieldsTable(table) if store.codec is None else table


def _check_outermost(store: IBackingMap) -> None:
    while isinstance(store, WrappedMap):
        store = store.inner
        if isinstance(store, LayeredMap):
            raise StateError(
                f"{type(store).__name__} lies below another wrapper of the map, where no state "
                "would read and write through it; let it wrap the wrapper"
            )
