"""Checks the values that a step made against the declared types of its fields."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from types import NoneType

from trident.errors import EmittedValueError
from trident.kernels.block import Block
from trident.kernels.kernel import BlockKernel, Kernel
from trident.kernels.task import Task, step_name
from trident.plan.nodes import Node
from trident.tuples.value_types import conformed, fits, python_type


@dataclass(frozen=True)
class TypeCheckKernel(BlockKernel):
    """Checks the fields that a step made, and converts values that differ in form only.

    Parameters
    ----------
    names : tuple of str
        The fields that the step made.
    kinds : tuple of (str, str, frozenset)
        Name and type of each field that is checked, and the Python types that surely fit.
    """

    names: tuple[str, ...]
    kinds: tuple[tuple[str, str, frozenset[type]], ...]

    def apply(self, block: Block, task: Task) -> Block:
        """The block, in which values were converted where they had to be."""
        found = {}
        for name, kind, plain in self.kinds:
            values = block.values(name)
            if plain.issuperset(map(type, values)):
                continue
            try:
                right = conformed(self.step.text, name, kind, values)
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


def type_check(node: Node) -> TypeCheckKernel | None:
    """The kernel that checks what a step makes; None where no field has a type to check."""
    made = node.facts.makes
    kinds = tuple(
        (name, kind, _plain(wanted))
        for name, kind in made.types.items()
        if kind and (wanted := python_type(kind))
    )
    return TypeCheckKernel(step_name(node), None, made.names, kinds) if kinds else None


def _plain(wanted: type) -> frozenset[type]:
    """The Python types that surely fit: integers and decimals may have too many digits."""
    return frozenset() if wanted in (int, Decimal) else frozenset({wanted, NoneType})


def with_type_check(kernel: Kernel, node: Node) -> tuple[Kernel, ...]:
    """The kernel of a step, and the check of what it makes where there is one."""
    check = type_check(node)
    return (kernel,) if check is None else (kernel, check)
