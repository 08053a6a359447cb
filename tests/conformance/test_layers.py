"""Every layer over a backing map passes the suite that the map below it passes.

A layer stands on tables, which are alike for all stores: one store does, and a second where what a
write answers differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tests.states.abilities import EntryMap, FencedMap, PlainMap
from trident.states import (
    Ability,
    CachedMap,
    IBackingMap,
    LayeredMap,
    MicroBatchMap,
    WrappedMap,
)
from trident.states.kinds import PLAIN
from trident.states.table.build import layered
from trident.states.testing.check_map import MapChecks
from trident.states.testing.check_states import StateChecks
from trident.states.testing.checks import begun, record
from trident.states.testing.suite import BackingMapConformance

FENCED = frozenset({Ability.FENCED, Ability.REMOVE})


class TestWrappedFencedMap(BackingMapConformance):
    abilities = FENCED

    def make_map(self) -> IBackingMap:
        return WrappedMap(FencedMap())

    def reopen(self, backing: IBackingMap) -> IBackingMap:
        assert isinstance(backing, WrappedMap)
        return WrappedMap(super().reopen(backing.inner))


class LayerConformance(StateChecks):
    """States over layers; another process puts layers of its own over the same store."""

    store: ClassVar[type[PlainMap]] = FencedMap
    abilities = FENCED

    def make_map(self) -> IBackingMap:
        return self.store()


class TestMicroBatchedFencedMap(LayerConformance):
    def layers(self, backing: IBackingMap) -> LayeredMap:
        return MicroBatchMap(backing, max_get=2, max_put=3)


class TestMicroBatchedEntryMap(TestMicroBatchedFencedMap):
    store = EntryMap
    abilities = frozenset({Ability.ENTRY})


class TestTinyCache(LayerConformance):
    shared = False  # a cache has to be the only writer

    def layers(self, backing: IBackingMap) -> LayeredMap:
        return CachedMap(backing, 1)


class TestAllLayers(LayerConformance):
    shared = False

    def layers(self, backing: IBackingMap) -> LayeredMap:
        return CachedMap(MicroBatchMap(backing, 3, 2), 50)


class ThroughLayers(IBackingMap):
    """A map whose two methods do what a state does in a batch: they go through all layers."""

    def __init__(self, layers: Callable[[IBackingMap], LayeredMap], store: IBackingMap) -> None:
        self.store = store
        own = record(1)
        begun(store, own)
        self._table = layered(layers(store), PLAIN).writing
        self._table.begin(own)

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return list(self._table.read(keys))

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        assert not self._table.write(keys, values)


class LayersConformance(MapChecks):
    """What a state reads and writes through layers is what a map has to give and to take."""

    shared = False
    pickles = False

    def make_map(self) -> IBackingMap:
        return ThroughLayers(self.through, FencedMap())

    def reopen(self, backing: IBackingMap) -> IBackingMap:
        assert isinstance(backing, ThroughLayers)
        return ThroughLayers(self.through, super().reopen(backing.store))

    def through(self, store: IBackingMap) -> LayeredMap:
        raise NotImplementedError


class TestThroughATinyCache(LayersConformance):
    def through(self, store: IBackingMap) -> LayeredMap:
        return CachedMap(store, 1)


class TestThroughParts(LayersConformance):
    def through(self, store: IBackingMap) -> LayeredMap:
        return MicroBatchMap(store, max_get=2, max_put=3)


class TestThroughAllLayers(LayersConformance):
    def through(self, store: IBackingMap) -> LayeredMap:
        return CachedMap(MicroBatchMap(store, 3, 2), 50)
