"""The check of a step's values as a step of its own, right after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trident.conforming import Conforming, Misfit, conforming
from trident.fields import Fields
from trident.plan.nodes import Node
from trident.rows import Row
from trident.spark.block import Block
from trident.spark.steps import Place, Step, Task


@dataclass(frozen=True)
class ConformStep(Step):
    """Checks the fields that the step before it made."""

    check: Conforming

    def run(self, blocks: Iterator[Block], task: Task) -> Iterator[Block]:
        for block in blocks:
            yield self.apply(block, task)

    def apply(self, block: Block, task: Task) -> Block:
        """The block with what had to be converted."""
        with self._blaming(task):
            converted = self.check.converted(block.values)
        return block.added(converted) if converted else block

    def rows(self, fields: Fields, rows: list[Row], task: Task) -> list[Row]:
        """Tuples with what had to be converted."""
        with self._blaming(task):
            return self.check.rows(fields, rows)

    @contextmanager
    def _blaming(self, task: Task) -> Iterator[None]:
        try:
            yield
        except Misfit as found:
            with task.at(self.place, self.check.names, [found.row], iter(())):
                raise found.error from None


def conform_step(node: Node, place: Place) -> ConformStep | None:
    """What checks the fields that a step makes; None where no type of them is checked."""
    check = conforming(node)
    return None if check is None else ConformStep(place, check)


def checked(step: Step, node: Node) -> tuple[Step, ...]:
    """A step, and the check of what it makes."""
    check = conform_step(node, step.place)
    return (step,) if check is None else (step, check)
