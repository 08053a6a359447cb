"""What runs inside a fused Python stage: one step for each kind of operation.

A step is pickled to the executors. ``run`` turns the blocks of one partition into others; it is
called once a task, so once a batch and partition, more often where a task is tried again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from operator import length_hint
from typing import Any

from trident.failures import OperationError, describe, operation_error
from trident.fields import Fields
from trident.operations import (
    Consumer,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    Operation,
    PlainFunction,
    TridentOperationContext,
)
from trident.rows import (
    checked_row,
    checked_rows,
    checked_values,
    expander,
    flat_rows,
    operation_name,
)
from trident.spark.block import Block, block_of, columns_of
from trident.states.control import ControlRecord
from trident.states.errors import FailedException, SerializationError, StateError
from trident.tuples import tuple_type

# A failed attempt and what states say is decided by the batch runner; the rest is the user's.
_PASSING = (FailedException, StateError)


@dataclass(frozen=True)
class Place:
    """A step as errors name it.

    Parameters
    ----------
    step : str
        The step as in ``explain()``.
    declared : str
        ``file:line`` of the call that declared it.
    """

    step: str
    declared: str


@dataclass(frozen=True)
class Task:
    """Where a stage runs.

    Parameters
    ----------
    record : ControlRecord
        What every state of the group has begun; its token is the attempt.
    partition : int
        The partition, from 0.
    partitions : int
        How many there are.
    """

    record: ControlRecord
    partition: int
    partitions: int

    @contextmanager
    def at(
        self, place: Place, names: Sequence[str] = (), rows: Sequence[Any] = (), pending: Any = ()
    ) -> Iterator[None]:
        """Name the step, and the tuple at hand, in whatever an operation raises in the context.

        Parameters
        ----------
        place : Place
            The step.
        names : sequence of str
            The fields of the rows.
        rows : sequence
            The tuples that are handed to the operation, or for one field the values.
        pending : iterator
            An iterator over `rows`; how far it has come tells the tuple, at no cost.
        """
        try:
            yield
        except OperationError:
            raise
        except Exception as error:
            if isinstance(error, _PASSING) and not isinstance(error, SerializationError):
                raise
            position = len(rows) - length_hint(pending) - 1
            row = None
            if rows and position >= 0:
                found = rows[position]
                row = describe(names, found if isinstance(found, tuple) else (found,))
            raise operation_error(
                error,
                step=place.step,
                declared=place.declared,
                token=self.record.token,
                partition=self.partition,
                row=row,
            ) from error

    @contextmanager
    def prepared(self, place: Place, operation: Operation) -> Iterator[None]:
        """Prepare an operation, and clean it up after the context."""
        with self.at(place):
            operation.prepare({}, TridentOperationContext(self.partition, self.partitions))
        try:
            yield
        finally:
            with self.at(place):
                operation.cleanup()


@dataclass(frozen=True)
class Step(ABC):
    """One step of a fused stage."""

    place: Place

    @abstractmethod
    def run(self, blocks: Iterator[Block], task: Task) -> Iterator[Block]:
        """Turn the blocks of a partition into others."""


@dataclass(frozen=True)
class BlockStep(Step):
    """A step that works on each block by itself, with one operation.

    ``carried`` are the fields before the step that a later one still needs.
    """

    operation: Any
    inputs: Fields
    carried: tuple[str, ...]

    def run(self, blocks: Iterator[Block], task: Task) -> Iterator[Block]:
        with task.prepared(self.place, self.operation):
            for block in blocks:
                yield self.apply(block, task)

    @abstractmethod
    def apply(self, block: Block, task: Task) -> Block:
        """Turn one block into another."""

    def rows(self, block: Block) -> list[Any]:
        """The tuples that the operation is called with."""
        return made_tuples(self.operation, self.inputs, block)


@dataclass(frozen=True)
class EachStep(BlockStep):
    """Appends what a function makes of the inputs."""

    operation: Function
    outputs: tuple[str, ...]

    def apply(self, block: Block, task: Task) -> Block:
        if isinstance(self.operation, PlainFunction) and len(self.inputs) == 1:
            given = block.values(self.inputs.names[0])
            call: Callable[[Any], Any] = self.operation.expand
        else:
            given = list(block.tuples(self.inputs.names))
            call = expander(self.operation, self.inputs, Fields(*self.outputs))
        pending = iter(given)
        with task.at(self.place, self.inputs.names, given, pending):
            return self._expanded(block, map(call, pending), call)

    def _expanded(self, block: Block, made: Iterator[Any], call: Callable[[Any], Any]) -> Block:
        name, width = operation_name(self.operation), len(self.outputs)
        plain = isinstance(self.operation, PlainFunction) and call == self.operation.expand
        if plain and width == 1:
            if not self.carried:
                values = checked_values(name, list(chain.from_iterable(made)))
                return Block({}, {self.outputs[0]: values}, len(values))
            lists = list(map(list, made))
            values = checked_values(name, list(chain.from_iterable(lists)))
            counts = list(map(len, lists))
            return block.repeated(counts, self.carried).added({self.outputs[0]: values})
        each = [checked_rows(name, items, width) for items in made] if plain else list(made)
        counts = list(map(len, each))
        new = columns_of(self.outputs, list(chain.from_iterable(each)))
        return block.repeated(counts, self.carried).added(new)


@dataclass(frozen=True)
class FilterStep(BlockStep):
    """Keeps some rows."""

    operation: Filter

    def apply(self, block: Block, task: Task) -> Block:
        given = self.rows(block)
        pending = iter(given)
        with task.at(self.place, self.inputs.names, given, pending):
            mask = list(map(bool, map(self.operation.isKeep, pending)))
        return block.kept(mask, self.carried)


@dataclass(frozen=True)
class MapStep(BlockStep):
    """Replaces each row by one other."""

    operation: MapFunction
    outputs: tuple[str, ...]

    def apply(self, block: Block, task: Task) -> Block:
        given, name, width = self.rows(block), operation_name(self.operation), len(self.outputs)
        pending = iter(given)
        with task.at(self.place, self.inputs.names, given, pending):
            made = [checked_row(name, self.operation.execute(row), width) for row in pending]
        return block_of(self.outputs, made)


@dataclass(frozen=True)
class FlatMapStep(BlockStep):
    """Replaces each row by any number of others."""

    operation: FlatMapFunction
    outputs: tuple[str, ...]

    def apply(self, block: Block, task: Task) -> Block:
        given, name, width = self.rows(block), operation_name(self.operation), len(self.outputs)
        execute, pending = self.operation.execute, iter(given)
        with task.at(self.place, self.inputs.names, given, pending):
            made = [new for row in pending for new in flat_rows(name, execute(row), width)]
        return block_of(self.outputs, made)


@dataclass(frozen=True)
class PeekStep(BlockStep):
    """Shows each row to a consumer."""

    operation: Consumer

    def apply(self, block: Block, task: Task) -> Block:
        given = self.rows(block)
        pending = iter(given)
        with task.at(self.place, self.inputs.names, given, pending):
            for row in pending:
                self.operation.accept(row)
        return block


def made_tuples(operation: Operation, inputs: Fields, block: Block) -> list[Any]:
    """The rows of a block as an operation takes them: plain tuples where it reads by position."""
    rows = block.tuples(inputs.names)
    return list(rows if operation.positional else map(tuple_type(inputs), rows))
