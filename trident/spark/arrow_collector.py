"""What a partition emits in a task, as Arrow of the declared types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from trident.spark.stage import UNFIT, find_unfit_value
from trident.spouts.collector import SpoutCollector
from trident.tuples.arrow_columns import combined
from trident.tuples.block import Block
from trident.tuples.fields import Fields
from trident.tuples.value_types import conform, misfit, python_type

_FORMS = {
    pa.string(): (pa.large_string(), pa.string_view()),
    pa.binary(): (pa.large_binary(), pa.binary_view()),
}
"""The other types of the same values."""


class ArrowCollector(SpoutCollector):
    """Takes the tuples of a partition; columns of Arrow are not made lists. `types` has the
    declared type of each field that has one, and what that is in Arrow."""

    def __init__(
        self, spout: str, fields: Fields, types: Mapping[str, tuple[str, pa.DataType]]
    ) -> None:
        super().__init__(spout, fields)
        self._types = types

    def blocks(self) -> Sequence[Block]:
        return [self._checked(block) for block in super().blocks()]

    def _array(self, column: Any) -> pa.Array | None:
        return combined(column)

    def _checked(self, block: Block) -> Block:
        """The block as Arrow of the declared types."""
        return Block({}, block.length, {name: self._column(block, name) for name in self._types})

    def _column(self, block: Block, name: str) -> pa.Array:
        declared, wanted = self._types[name]
        given = block.arrow(name)
        if given is not None and _holds(wanted, given.type):
            return given.cast(wanted)
        values = block.values(name)
        if python_type(declared) is not None:
            values = conform(self._spout, name, declared, values)
        try:
            return pa.array(values, wanted)
        except UNFIT:
            wrong = find_unfit_value(values, wanted)
            raise misfit(self._spout, name, declared, wrong) from None


def _holds(wanted: pa.DataType, given: pa.DataType) -> bool:
    """Whether each value of a type is one of the wanted type too, and Arrow makes it so."""
    kinds = pa.types
    if kinds.is_dictionary(given):
        given = given.value_type
    if kinds.is_timestamp(given) and kinds.is_timestamp(wanted):
        return given.unit == wanted.unit and (given.tz is None) == (wanted.tz is None)
    for is_number in (kinds.is_signed_integer, kinds.is_floating):
        if is_number(given) and is_number(wanted):
            return bool(given.bit_width <= wanted.bit_width)
    return given == wanted or given in _FORMS.get(wanted, ())
