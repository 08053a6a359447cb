"""The kernel of ``stateQuery``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from trident.kernels import column_forms
from trident.kernels.block import Block, columns_of
from trident.kernels.kernel import made_tuples
from trident.kernels.task import StepName, Task
from trident.operations.emitted import ListCollector, retrieved
from trident.operations.interfaces import QueryFunction, operation_name
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class QueryKernel:
    """Queries a state for tuples.

    It is no `Kernel`, as it is handed the state with each block.

    Parameters
    ----------
    step : StepName
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

    step: StepName
    operation: QueryFunction[Any, Any]
    inputs: Fields
    carried: tuple[str, ...]
    outputs: tuple[str, ...]

    def apply(self, view: Any, block: Block, task: Task) -> Block:
        """Look each tuple up in the `view` of a state; a block without tuples asks nothing."""
        if not block.length:
            return block
        given = made_tuples(self.operation, self.inputs, block)
        with task.at(self.step):
            results = retrieved(self.operation, view, given)
        return self._emitted(block, given, results, task)

    def apply_to_all(
        self, view: Any, blocks: Sequence[Block], task: Task
    ) -> list[Block | Exception]:
        """Look the tuples of several requests up in one call.

        Parameters
        ----------
        view
            Of the state.
        blocks : sequence of Block
            The tuples of each request.
        task : Task
            That of any of them.

        Returns
        -------
        list of Block or Exception
            For each request what its tuples became, or what was raised for it.
        """
        given = [made_tuples(self.operation, self.inputs, block) for block in blocks]
        with task.at(self.step):
            results = iter(retrieved(self.operation, view, list(chain.from_iterable(given))))
        made: list[Block | Exception] = []
        for block, own in zip(blocks, given, strict=True):
            found = list(islice(results, len(own)))
            try:
                made.append(self._emitted(block, own, found, task) if own else block)
            except Exception as error:
                made.append(error)
        return made

    def _emitted(
        self, block: Block, given: Sequence[Any], results: Sequence[Any], task: Task
    ) -> Block:
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
