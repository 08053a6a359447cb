"""The state machine over a real backend."""

from __future__ import annotations

import pickle
from typing import Any

from trident.states.backing_map import IBackingMap
from trident.states.testing.machine import StatesMachine
from trident.states.testing.stores import Misfortunes, UnluckyStore


class BackendMachine(StatesMachine):
    """Subclass it, say how a map is made, and have its ``TestCase`` run.

    Every misfortune but the loss of acknowledged writes is played by a layer over the map; the
    store itself stays well. ``cache_size`` puts a cache over the map, ``state`` is the kind of
    the values.

    Notes
    -----
    ``make_map()`` and ``reopen(map)`` are those of
    :class:`~trident.states.testing.suite.BackingMapConformance`.

    Examples
    --------
    >>> from hypothesis import settings
    >>> from trident.states.testing.stores import FencedMap
    >>> class Machine(BackendMachine):
    ...     def make_map(self):
    ...         return FencedMap()
    >>> TestMachine = Machine.TestCase
    >>> TestMachine.settings = settings(max_examples=2, deadline=None, database=None)
    >>> TestMachine().runTest()
    """

    def make_map(self) -> IBackingMap:
        """Return a map over a store of its own, which is empty."""
        raise NotImplementedError

    def reopen(self, backing: IBackingMap) -> IBackingMap:
        """Return another map over the same entries, as another process would open it."""
        reached: IBackingMap = pickle.loads(pickle.dumps(backing))
        return reached

    def make_server(self) -> Misfortunes:
        first = self.make_map()
        return UnluckyStore(lambda: self.reopen(first))

    def open_map(self, server: Any) -> IBackingMap:
        opened: IBackingMap = server.open()
        return opened
