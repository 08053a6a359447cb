"""The tests that every backing map, and every layer over one, has to pass."""

from __future__ import annotations

from typing import ClassVar

from trident.states.testing.check_abilities import AbilityChecks
from trident.states.testing.check_map import ControlChecks, MapChecks
from trident.states.testing.check_states import StateChecks
from trident.states.testing.model import AbleModel, Model


class BackingMapConformance(MapChecks, ControlChecks, AbilityChecks, StateChecks):
    """Subclass it in a test module, say how a map is made, and run pytest.

    Attributes
    ----------
    abilities : frozenset of Ability
        What the map can do; its checks run, and a map that can do more or less than is declared
        fails, so that a misspelt method does not go unnoticed.
    shared : bool
        Whether several maps may write the same entries; False for a layer that has to be the only
        writer, such as a cache.
    values : type or None
        The only type of values that the map keeps, ``int`` or ``float``; it has to refuse others
        with a SerializationError. None where it keeps whatever its serializer does.
    pickles : bool
        Whether the map itself pickles, and its copy reaches the same store.
    runs : int
        How many scripts are played on the map and on its model, each over an empty store.

    Notes
    -----
    ``make_map()`` returns a map over an empty store of its own; ``reopen(map)`` another map over
    the same entries, by default a pickled copy; ``make_map_of(kind)`` is for stores that have to
    know the kind of the values beforehand.

    Examples
    --------
    >>> from uuid import uuid4
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import abilities
    >>> class TestMemoryMap(BackingMapConformance):
    ...     abilities = abilities(MemoryMap("any"))
    ...     def make_map(self):
    ...         return MemoryMap(uuid4().hex)
    """

    model: ClassVar[type[Model]] = AbleModel
