"""Every layer over a backing map passes the suite that the map below it passes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

import pytest

from trident.backends.memory import MemoryMap
from trident.states import Ability, CachedMap, CountedMap, IBackingMap, MicroBatchMap, WrappedMap
from trident.states.kinds import PLAIN
from trident.states.table.build import layered
from trident.states.testing.check_map import MapChecks
from trident.states.testing.checks import begun, record
from trident.states.testing.stores import (
    EntryMap,
    FencedMap,
    PlainMap,
    VersionedMap,
)
from trident.states.testing.suite import BackingMapConformance

# The whole suite, for each layer over each kind of store.
pytestmark = pytest.mark.slow

_NUMBERS = count()
FENCED = frozenset({Ability.FENCED, Ability.REMOVE})


class LayerConformance(BackingMapConformance):
    """Layers over a store: another process puts layers of its own over the same store."""

    store: ClassVar[type[PlainMap]] = FencedMap

    def layers(self, inner: IBackingMap) -> IBackingMap:
        raise NotImplementedError

    def make_map(self) -> IBackingMap:
        return self.layers(self.store())

    def reopen(self, backing: IBackingMap) -> IBackingMap:
        while isinstance(backing, WrappedMap):
            backing = backing.inner
        return self.layers(super().reopen(backing))


class TestWrappedFencedMap(LayerConformance):
    abilities = FENCED

    def layers(self, inner: IBackingMap) -> IBackingMap:
        return WrappedMap(inner)


class CountedConformance(LayerConformance):
    def layers(self, inner: IBackingMap) -> IBackingMap:
        return CountedMap(inner)


class TestCountedFencedMap(CountedConformance):
    abilities = FENCED


class TestCountedEntryMap(CountedConformance):
    store = EntryMap
    abilities = frozenset({Ability.ENTRY})


class TestCountedVersionedMap(CountedConformance):
    store = VersionedMap
    abilities = frozenset({Ability.VERSIONED})


class TestCountedMemoryMap(CountedConformance):
    abilities = FENCED | {Ability.LIST, Ability.LOOK}

    def make_map(self) -> IBackingMap:
        return CountedMap(MemoryMap(f"counted {next(_NUMBERS)}"))


class MicroBatchConformance(LayerConformance):
    def layers(self, inner: IBackingMap) -> IBackingMap:
        return MicroBatchMap(inner, max_get=2, max_put=3)


class TestMicroBatchedPlainMap(MicroBatchConformance):
    store = PlainMap


class TestMicroBatchedFencedMap(MicroBatchConformance):
    abilities = FENCED


class TestMicroBatchedEntryMap(MicroBatchConformance):
    store = EntryMap
    abilities = frozenset({Ability.ENTRY})


class TestMicroBatchedVersionedMap(MicroBatchConformance):
    store = VersionedMap
    abilities = frozenset({Ability.VERSIONED})


class CachedConformance(LayerConformance):
    """A cache has to be the only writer."""

    shared = False

    def layers(self, inner: IBackingMap) -> IBackingMap:
        return CachedMap(inner, 100)


class TestCachedPlainMap(CachedConformance):
    store = PlainMap


class TestCachedFencedMap(CachedConformance):
    abilities = FENCED


class TestCachedEntryMap(CachedConformance):
    store = EntryMap
    abilities = frozenset({Ability.ENTRY})


class TestCachedVersionedMap(CachedConformance):
    store = VersionedMap
    abilities = frozenset({Ability.VERSIONED})


class TestTinyCache(CachedConformance):
    abilities = FENCED

    def layers(self, inner: IBackingMap) -> IBackingMap:
        return CachedMap(inner, 1)


class TestAllLayers(CachedConformance):
    abilities = FENCED

    def layers(self, inner: IBackingMap) -> IBackingMap:
        return CountedMap(CachedMap(MicroBatchMap(inner, 3, 2), 50))


class ThroughLayers(IBackingMap):
    """A map whose two methods do what a state does in a batch: they go through all layers."""

    def __init__(self, wrapped: IBackingMap) -> None:
        self.wrapped = wrapped
        own = record(1)
        begun(wrapped, own)
        self._table = layered(wrapped, PLAIN).writing
        self._table.begin(own)

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return list(self._table.read(keys))

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        assert not self._table.write(keys, values)


class LayersConformance(MapChecks):
    """What a state reads and writes through layers is what a map has to give and to take."""

    shared = False
    pickles = False

    def layers(self, inner: IBackingMap) -> IBackingMap:
        raise NotImplementedError

    def make_map(self) -> IBackingMap:
        return ThroughLayers(self.layers(FencedMap()))

    def reopen(self, backing: IBackingMap) -> IBackingMap:
        assert isinstance(backing, ThroughLayers)
        store = backing.wrapped
        while isinstance(store, WrappedMap):
            store = store.inner
        return ThroughLayers(self.layers(super().reopen(store)))


class TestThroughACache(LayersConformance):
    def layers(self, inner: IBackingMap) -> IBackingMap:
        return CachedMap(inner, 100)


class TestThroughATinyCache(LayersConformance):
    def layers(self, inner: IBackingMap) -> IBackingMap:
        return CachedMap(inner, 1)


class TestThroughParts(LayersConformance):
    def layers(self, inner: IBackingMap) -> IBackingMap:
        return MicroBatchMap(inner, max_get=2, max_put=3)


class TestThroughAllLayers(LayersConformance):
    def layers(self, inner: IBackingMap) -> IBackingMap:
        return CountedMap(CachedMap(MicroBatchMap(inner, 3, 2), 50))
