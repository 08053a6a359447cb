"""The machine of misfortunes over maps in memory that may lose what they have not flushed."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tests.states.abilities import PlainMap
from trident.states import IBackingMap
from trident.states.testing.machine import StatesMachine


class MemoryMachine(StatesMachine):
    store: ClassVar[type[PlainMap]]

    def make_map(self) -> PlainMap:
        return self.store()

    def loss(self, backing: IBackingMap) -> Callable[[int], object]:
        assert isinstance(backing, PlainMap)
        return backing.server.fail_over
