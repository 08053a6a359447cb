"""The kernel of ``stateQuery``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trident.kernels import column_forms
from trident.kernels.kernel import made_tuples
from trident.kernels.task import StepName, Task
from trident.operations.builtin import MapGet
from trident.operations.emitted import ListCollector, retrieve
from trident.operations.interfaces import QueryFunction, operation_name
from trident.states.asking import Wait
from trident.tuples.block import Block, columns_of
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class QueryKernel:
    """Queries a state, handed to it with each block, so it is no `Kernel`; hands on what is
    `carried`."""

    step: StepName
    operation: QueryFunction[Any, Any]
    inputs: Fields
    carried: tuple[str, ...]
    outputs: tuple[str, ...]

    def apply(self, view: Any, block: Block, task: Task) -> Block:
        """Look each tuple up in the `view` of a state; a block without tuples asks nothing."""
        if not block.length:
            return block
        given = self.given(block)
        return self.emit(block, given, self.retrieve(view, given, task), task)

    def given(self, block: Block) -> Sequence[Any]:
        """The tuples of a block, as the query is handed them."""
        return made_tuples(self.operation, self.inputs, block)

    def retrieve(self, view: Any, given: Sequence[Any], task: Task) -> Sequence[Any]:
        """What the state answers, for each tuple."""
        with task.at(self.step):
            return retrieve(self.operation, view, given)

    def ask(self, view: Any, given: Sequence[Any], task: Task) -> Wait[Sequence[Any]]:
        """Ask the state, and return a function that waits for its answers."""
        assert isinstance(self.operation, MapGet)
        with task.at(self.step):
            wait = self.operation.ask(view, given)

        def answers() -> Sequence[Any]:
            with task.at(self.step):
                return wait()

        return answers

    def emit(self, block: Block, given: Sequence[Any], results: Sequence[Any], task: Task) -> Block:
        """What a block becomes with the results of its tuples."""
        function = self.operation
        if column_forms.emits_results(function) and len(self.outputs) == 1:
            return block.only(self.carried).added({self.outputs[0]: list(results)})
        collector = ListCollector(operation_name(function), len(self.outputs))
        counts, done = [], 0
        pending = iter(given)
        with task.at(self.step, self.inputs.names, block, pending):
            for row, result in zip(pending, results, strict=True):
                function.execute(row, result, collector)
                counts.append(len(collector.rows) - done)
                done += counts[-1]
        found = columns_of(self.outputs, collector.rows)
        return block.repeated(counts, self.carried).added(found)
