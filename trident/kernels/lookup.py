"""Queries of a state, wherever its values are read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

from trident.emitted import ListCollector, Row, retrieved
from trident.fields import Fields
from trident.kernels.block import Block, columns_of
from trident.kernels.step import made_tuples
from trident.kernels.task import Place, Task
from trident.operations import QueryFunction, operation_name


@dataclass(frozen=True)
class Lookup:
    """What a query does with some tuples.

    Parameters
    ----------
    place : Place
        The step, for errors.
    operation : QueryFunction
        The query.
    inputs : Fields
        What it reads of each tuple.
    carried : tuple of str
        The fields before it that a later step still needs.
    outputs : tuple of str
        What it appends.
    """

    place: Place
    operation: QueryFunction[Any, Any]
    inputs: Fields
    carried: tuple[str, ...]
    outputs: tuple[str, ...]

    def apply(self, view: Any, block: Block, task: Task) -> Block:
        """Ask what a state shows for each tuple; nothing is asked for a block without tuples."""
        if not block.length:
            return block
        answers = self._answers(view, block, task)
        found = columns_of(self.outputs, list(chain.from_iterable(answers)))
        return block.repeated(list(map(len, answers)), self.carried).added(found)

    def _answers(self, view: Any, block: Block, task: Task) -> list[list[Row]]:
        function, name = self.operation, operation_name(self.operation)
        given = made_tuples(function, self.inputs, block)
        with task.at(self.place):
            results = retrieved(function, view, given)
        answers = []
        pending = iter(given)
        with task.at(self.place, self.inputs.names, block, pending):
            for row, result in zip(pending, results, strict=True):
                collector = ListCollector(name, len(self.outputs))
                function.execute(row, result, collector)
                answers.append(collector.rows)
        return answers
