"""Checks the values that a step made against the declared types of its fields."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from trident.errors import EmittedValueError
from trident.kernels import column_forms
from trident.kernels.kernel import BlockKernel
from trident.kernels.task import StepName, Task
from trident.operations.vectorised import Vectorised
from trident.tuples.block import Block
from trident.tuples.fields import Fields
from trident.tuples.value_types import LIMITS, conform, fits, python_type, sure_types

_IN_ARROW = {
    **{"long": "int64", "int": "int32", "short": "int16", "byte": "int8"},
    **{"double": "double", "float": "float", "boolean": "bool"},
    **{"string": "string", "binary": "binary", "date": "date32[day]"},
}
"""The Arrow types of columns in which every value has a field's type."""


@dataclass(frozen=True)
class TypeCheckKernel(BlockKernel):
    """Checks the fields a step made, with the plain types and integer limits of each; converts
    forms."""

    names: tuple[str, ...]
    kinds: tuple[tuple[str, str, frozenset[type], int], ...]

    def apply(self, block: Block, task: Task) -> Block:
        """Check a block, which may be empty, and convert values where their form differs."""
        if not block.length:
            return block
        found = {}
        for name, kind, plain, limit in self.kinds:
            column = block.arrow(name)
            if column is not None and str(column.type) == _IN_ARROW.get(kind):
                continue
            values = block.values(name)
            if plain.issuperset(map(type, values)) and (
                not limit or (-limit <= min(values) and max(values) < limit)
            ):
                continue
            try:
                right = conform(self.step.text, name, kind, values)
            except EmittedValueError:
                pending = iter(values)
                with task.at(self.step, self.names, block, pending):
                    for value in pending:
                        if not fits(kind, value):
                            raise
                raise
            if right is not values:
                found[name] = right
        return block.added(found) if found else block


def type_check(
    step: StepName, operation: object, makes: Fields, needed: Container[str] | None = None
) -> TypeCheckKernel | None:
    """The kernel that checks the needed fields that a step makes; None if none needs a check."""
    if isinstance(operation, Vectorised):
        return None
    sure = column_forms.sure_type(operation)
    kinds = tuple(
        (name, kind, sure_types(kind), LIMITS.get(kind, 0))
        for name, kind in makes.types.items()
        if kind and kind != sure and python_type(kind) and (needed is None or name in needed)
    )
    return TypeCheckKernel(step, None, makes.names, kinds) if kinds else None
