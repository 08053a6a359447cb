"""Maps of bare values, which count a replay again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.states.control import ControlRecord
from trident.states.resolution import Cut
from trident.states.rules import Rules
from trident.states.stored_map import StoredMap
from trident.states.values import StateType


class NonTransactionalRules(Rules):
    """An entry is its value."""

    kind = StateType.NON_TRANSACTIONAL

    def read(self, stored: Sequence[Any], record: ControlRecord) -> list[Any]:
        return list(stored)

    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> list[Any]:
        return list(values)

    def at_cut(self, stored: Sequence[Any], cut: Cut) -> list[Any]:
        return list(stored)

    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        return entry is None


class NonTransactionalMap(StoredMap):
    """A map state of values alone: the smallest, at least once.

    A replayed batch is applied again. Right for values that do not depend on the stored one, such
    as the last reading of a sensor; readers may see a batch before it commits.

    Parameters
    ----------
    backing : IBackingMap
        The store.
    serializer : Serializer, optional
        JSON as Storm writes it, by default.
    """

    rules = NonTransactionalRules()
