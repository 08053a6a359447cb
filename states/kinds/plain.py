"""Plain values, of non-transactional states: a batch that runs twice counts twice.

Right for values that do not depend on the stored one, such as the last reading of a sensor. Readers
may see a batch before it commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.states.control import ControlRecord
from trident.states.cut import Cut
from trident.states.kinds.kind import Kind
from trident.states.serializers import Serializer, dump_all
from trident.states.values import StateType


class PlainKind(Kind):
    """An entry is its value."""

    type = StateType.NON_TRANSACTIONAL
    columns = ("value",)
    tokens = 0

    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        return list(entries)

    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> list[Any]:
        return list(values)

    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        return entry is None

    def by_column(self, entries: Sequence[Any]) -> Sequence[Sequence[Any]]:
        return [entries]

    def of_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [value for (value,) in rows]

    def dumps(self, entries: Sequence[Any], serializer: Serializer) -> list[bytes]:
        return dump_all(serializer, entries)


PLAIN = PlainKind()
