"""What a factory learns from a store."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import pytest

from trident.backends.memory import MemoryMap
from trident.states.errors import UsageError
from trident.states.maps.factory import MapStateFactory
from trident.states.store import Store


@dataclass(frozen=True)
class Drawer(Store):
    """The least that a store may say."""

    prefix: str | None = None
    hosted = "driver"

    @property
    def identity(self) -> tuple[str, str, str]:
        return "drawer", "desk", self.prefix or ""

    def named(self, prefix: str) -> Drawer:
        return self if self.prefix is not None else replace(self, prefix=prefix)

    def open(self) -> MemoryMap:
        return MemoryMap("desk", prefix=self.prefix or "")


class LockedDrawer(Drawer):
    """One that says all that a store may say."""

    map_type = MemoryMap
    max_keys = 7
    shards = 3
    snapshot_key = ("sum",)

    def check_place(self) -> None:
        raise UsageError("drawer: it is locked")


def test_a_store_that_says_the_least_has_the_defaults_of_the_rest() -> None:
    factory = MapStateFactory(Drawer()).named("words")
    assert (factory.identity, factory.hosted) == (("drawer", "desk", "words"), "driver")
    assert (factory.map_type, factory.max_keys, factory.shards) == (None, 0, None)
    factory.check_place()
    state = pickle.loads(pickle.dumps(factory)).makeState()
    state.beginCommit(1)
    state.set(42)
    state.commit(1)
    assert state.multiGet([("$GLOBAL$",)]) == [42]


def test_what_a_store_says_counts() -> None:
    factory = MapStateFactory(LockedDrawer("words"))
    assert (factory.map_type, factory.max_keys, factory.shards) == (MemoryMap, 7, 3)
    assert factory.makeState().key == ("sum",)
    with pytest.raises(UsageError, match="it is locked"):
        factory.check_place()
