"""Queries of a state, wherever its values are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trident.kernels import column_forms
from trident.kernels.block import Block, columns_of
from trident.kernels.step import made_tuples
from trident.kernels.task import Place, Task
from trident.operations.emitted import ListCollector, retrieved
from trident.operations.interfaces import QueryFunction, operation_name
from trident.tuples.fields import Fields


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
        function = self.operation
        given = made_tuples(function, self.inputs, block)
        with task.at(self.place):
            results = retrieved(function, view, given)
        if column_forms.emits_results(function) and len(self.outputs) == 1:
            return block.only(self.carried).added({self.outputs[0]: list(results)})
        collector = ListCollector(operation_name(function), len(self.outputs))
        counts, done = [], 0
        pending = iter(given)
        with task.at(self.place, self.inputs.names, block, pending):
            for row, result in zip(pending, results, strict=True):
                function.execute(row, result, collector)
                counts.append(len(collector.rows) - done)
                done += counts[-1]
        found = columns_of(self.outputs, collector.rows)
        return block.repeated(counts, self.carried).added(found)
