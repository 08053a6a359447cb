"""Layers that users put over a backing map, for the states over it to read and write through."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.steps import Steps, control_of
from trident.states.table.table import Table


class LayeredMap(WrappedMap):
    """A backing map, and a layer that states over it read and write through.

    Everything else, the control record and a snapshot for example, and whoever calls the map
    itself, goes straight to the map below.
    """

    def control_steps(self) -> Steps[bytes | None]:
        return (yield from control_of(self.inner))

    @abstractmethod
    def over(self, below: Table) -> Table:
        """Return the layer over `below`."""


def layers(backing: IBackingMap) -> tuple[Sequence[LayeredMap], IBackingMap]:
    """Return the layers that a map is wrapped in, the outermost first, and the map itself."""
    found: list[LayeredMap] = []
    while isinstance(backing, LayeredMap):
        found.append(backing)
        backing = backing.inner
    return found, backing
