"""Layers that users put over a backing map, for the states over it to read and write through."""

from __future__ import annotations

from abc import ABC, abstractmethod

from trident.states.backing_map import IBackingMap
from trident.states.table.table import Table


class LayeredMap(ABC):
    """A backing map, and a layer through which the states over it read and write their entries.

    It is no map: only a state takes it. Control record and snapshots know of no layers.

    Parameters
    ----------
    inner : IBackingMap or LayeredMap
        The map below.
    """

    for_readers = True
    """Whether readers outside the batch go through it too."""

    def __init__(self, inner: IBackingMap | LayeredMap) -> None:
        self.inner = inner

    @abstractmethod
    def over(self, below: Table) -> Table:
        """Return the layer over `below`."""
