"""The values that a step made against the types of its fields, right after it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from types import NoneType

from trident.errors import EmittedValueError
from trident.kernels import column_forms
from trident.kernels.block import Block
from trident.kernels.step import BlockStep, Step
from trident.kernels.task import Place, Task
from trident.plan.nodes import Node
from trident.tuples.value_types import LIMITS, conformed, fits, python_type


@dataclass(frozen=True)
class ConformStep(BlockStep):
    """Checks the fields that the step before it made; converts what is the same in another form.

    Parameters
    ----------
    names : tuple of str
        The fields that the step made.
    kinds : tuple of (str, str, frozenset, int)
        Name and type of those that are checked, the Python types that need no closer look, and
        the limit of integers, 0 for other values.
    """

    names: tuple[str, ...]
    kinds: tuple[tuple[str, str, frozenset[type], int], ...]

    def apply(self, block: Block, task: Task) -> Block:
        """The block with what had to be converted; it may be without tuples, unlike elsewhere."""
        if not block.length:
            return block
        found = {}
        for name, kind, plain, limit in self.kinds:
            values = block.values(name)
            if plain.issuperset(map(type, values)) and (
                not limit or (-limit <= min(values) and max(values) < limit)
            ):
                continue
            try:
                right = conformed(self.place.step, name, kind, values)
            except EmittedValueError:
                pending = iter(values)
                with task.at(self.place, self.names, block, pending):
                    for value in pending:
                        if not fits(kind, value):
                            raise
                raise
            if right is not values:
                found[name] = right
        return block.added(found) if found else block


def conform_step(node: Node, place: Place) -> ConformStep | None:
    """The check of the fields that a step makes; None where none has a type that is checked."""
    made = node.facts.makes
    sure = column_forms.sure_type(node.facts.operation)
    kinds = tuple(
        (name, kind, *_plain(kind, wanted))
        for name, kind in made.types.items()
        if kind and kind != sure and (wanted := python_type(kind))
    )
    return ConformStep(place, None, made.names, kinds) if kinds else None


def _plain(kind: str, wanted: type) -> tuple[frozenset[type], int]:
    """Of integers the size matters too, of decimals how many digits they have."""
    if wanted is int:
        return frozenset({int}), LIMITS[kind]
    return frozenset() if wanted is Decimal else frozenset({wanted, NoneType}), 0


def checked(step: Step, node: Node) -> tuple[Step, ...]:
    """A step, and the check of what it makes."""
    check = conform_step(node, step.place)
    return (step,) if check is None else (step, check)
