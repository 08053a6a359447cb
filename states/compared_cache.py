"""A cache of entries for states that several processes write, whose store compares each entry."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from trident.states.backing_map import Ability, IBackingMap, layers
from trident.states.cached import CachedMap, Entries
from trident.states.coded import TranslatedMap


class ConditionalCachedMap(CachedMap):
    """A cache that need not be the only writer: each write is conditional on the very entry.

    For stores whose versions are their values. A value that was computed from an entry which is
    no longer true is refused by the store, and computed again. All maps of one store in one
    process share the entries, because each task opens a map of its own.

    Parameters
    ----------
    inner : IBackingMap
        The map below.
    size : int
        How many keys to keep.
    place : hashable
        What the maps that share the entries have in common.
    """

    hidden: ClassVar[frozenset[Ability]] = frozenset({Ability.FENCED, Ability.ADD, Ability.REMOVE})

    def __init__(self, inner: IBackingMap, size: int, place: Hashable) -> None:
        super().__init__(inner, size)
        self._entries = _SHARED.setdefault((os.getpid(), place), self._entries)


_SHARED: dict[tuple[int, Hashable], Entries] = {}


def believes(backing: IBackingMap) -> bool:
    """Return whether `backing` has a cache that only the writes prove."""
    return any(isinstance(layer, ConditionalCachedMap) for layer in layers(backing))


def doubt(backing: IBackingMap, keys: Sequence[Any]) -> None:
    """Have the store itself asked for `keys` next, where others write it too.

    For what is handed out: no later write shows whether it was true.
    """
    for layer in layers(backing):
        if isinstance(layer, TranslatedMap):
            keys = layer.keys_down(keys)
        elif isinstance(layer, ConditionalCachedMap):
            layer.forget(keys)
