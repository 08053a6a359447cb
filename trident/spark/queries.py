"""Queries of a state inside a batch: in a stage where the state can be reached from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from trident.fields import Fields
from trident.operations import QueryFunction
from trident.plan_states import as_before
from trident.rows import ListCollector, Row, operation_name, retrieved
from trident.spark.block import Block, columns_of
from trident.spark.conforming import ConformStep
from trident.spark.steps import Place, Step, Task, made_tuples
from trident.states.state import State, StateFactory


@dataclass(frozen=True)
class Lookup:
    """What a query does with some tuples.

    Parameters
    ----------
    place : Place
        The step.
    function : QueryFunction
        The query.
    inputs : Fields
        What it reads of each tuple.
    outputs : tuple of str
        What it appends.
    updated : bool
        Whether the same batch updates the state, so that it is read as it was before.
    """

    place: Place
    function: QueryFunction[Any, Any]
    inputs: Fields
    outputs: tuple[str, ...]
    updated: bool

    def answers(self, state: State, block: Block, task: Task) -> list[list[Row]]:
        """The values that each row of a block is given, a list for each."""
        function, name = self.function, operation_name(self.function)
        given = made_tuples(function, self.inputs, block)
        view = as_before(state, task.record) if self.updated else state
        with task.at(self.place):
            results = retrieved(function, view, given)
        answers = []
        pending = iter(given)
        with task.at(self.place, self.inputs.names, given, pending):
            for row, result in zip(pending, results, strict=True):
                collector = ListCollector(name, len(self.outputs))
                function.execute(row, result, collector)
                answers.append(collector.rows)
        return answers


@dataclass(frozen=True)
class QueryStep(Step):
    """Looks the rows of each block up in a state that tasks can reach."""

    lookup: Lookup
    factory: StateFactory
    carried: tuple[str, ...]

    def run(self, blocks: Iterator[Block], task: Task) -> Iterator[Block]:
        lookup = self.lookup
        with task.at(self.place):
            state = self.factory.makeState({}, None, task.partition, task.partitions)
        try:
            with task.prepared(self.place, lookup.function):
                for block in blocks:
                    answers = lookup.answers(state, block, task)
                    new = columns_of(lookup.outputs, list(chain.from_iterable(answers)))
                    yield block.repeated(list(map(len, answers)), self.carried).added(new)
        finally:
            state.close()


def answered(
    lookup: Lookup, state: State, block: Block, check: ConformStep | None, task: Task
) -> list[Row]:
    """Each row of a block with each of its answers behind it; for states on the driver."""
    with task.prepared(lookup.place, lookup.function):
        answers = lookup.answers(state, block, task)
    asked: Sequence[Row] = list(block.tuples(lookup.inputs.names))
    rows = [row + answer for row, found in zip(asked, answers, strict=True) for answer in found]
    fields = Fields.of(lookup.inputs) + lookup.outputs
    return rows if check is None else check.rows(fields, rows, task)
