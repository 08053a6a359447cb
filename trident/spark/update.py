"""State updates: on the driver for states that live there, else as the tail of a Spark job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trident.batch.outcome import Outcome
from trident.fields import Fields
from trident.operations import StateUpdater
from trident.plan_states import counted
from trident.rows import ListCollector, Row, operation_name
from trident.spark.attempt import Attempt, Seal
from trident.spark.block import Block, block_of_table, blocks
from trident.spark.conforming import ConformStep
from trident.spark.error_form import error_of, form_of
from trident.spark.errors import StatusError
from trident.spark.kernels import chained, record_batches
from trident.spark.routing import BUCKET
from trident.spark.steps import Place, Step, Task, made_tuples
from trident.state_updaters import MapCombinerAggStateUpdater
from trident.states.errors import FailedException, StaleBatchError, StateUnavailableError
from trident.states.keys import encode_keys
from trident.states.map_state import MapState
from trident.states.state import State, StateFactory

STATUS = "__trident_status"
"""The column in which a task that updates a state tells how that went."""


@dataclass(frozen=True)
class Update:
    """What one update does with the tuples of one partition.

    Parameters
    ----------
    place : Place
        The step.
    updater : StateUpdater
        Writes the tuples.
    inputs : Fields
        What it reads.
    outputs : Fields
        The new values.
    check : ConformStep or None
        Checks their types.
    kept : tuple of int, or None
        Which of them anything takes; None where nothing does.
    """

    place: Place
    updater: StateUpdater[Any]
    inputs: Fields
    outputs: Fields
    check: ConformStep | None
    kept: tuple[int, ...] | None

    def apply(self, state: State, block: Block, task: Task) -> list[Row]:
        """Hand a partition's tuples to a begun state; return what is kept of the new values."""
        made = self._applied(state, block, task) if block.length else []
        if self.check is not None:
            made = self.check.rows(self.outputs, made, task)
        if self.kept is None:
            return []
        return [tuple([row[position] for position in self.kept]) for row in made]

    def _applied(self, state: State, block: Block, task: Task) -> list[Row]:
        updater = self.updater
        if type(updater) is MapCombinerAggStateUpdater and isinstance(state, MapState):
            with task.at(self.place):
                return self._combined(updater, state, block)
        collector = ListCollector(operation_name(updater), len(self.outputs))
        tuples = made_tuples(updater, self.inputs, block)
        with task.prepared(self.place, updater), task.at(self.place):
            updater.updateState(state, tuples, collector)
        return collector.rows

    def _combined(
        self, updater: MapCombinerAggStateUpdater, state: MapState, block: Block
    ) -> list[Row]:
        group = updater.group.names
        keys, partials = encoded_keys(block, group), block.values(updater.value)
        if self.kept is None:
            state.multiFold(keys, partials, updater.combiner)
            return []
        values = state.multiCombine(keys, partials, updater.combiner)
        return [(*key, new) for key, new in zip(block.tuples(group), values, strict=True)]


def encoded_keys(block: Block, group: Sequence[str]) -> list[bytes]:
    """The encoded key of every row; a column of plain strings as a whole."""
    if len(group) == 1 and (column := block.input_column(group[0])) is not None:
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if text and not column.null_count and not _any_marked(column):
            keys: list[bytes] = column.cast(pa.binary()).to_pylist()
            return keys
    return encode_keys(block.tuples(group))


def _any_marked(column: pa.Array) -> bool:
    return bool(pc.any(pc.starts_with(column, "\0")).as_py())


@dataclass(frozen=True)
class UpdateKernel:
    """The end of a job that updates a state in its tasks; called once a task.

    It drains its whole input before it writes, and ends with a status row instead of raising:
    the driver decides what an error means, and Spark doesn't try the task again by itself.

    Parameters
    ----------
    steps : tuple of Step
        Python steps before the update.
    update : Update
        The update.
    factory : StateFactory
        Makes the state, in the task.
    schema : pyarrow.Schema
        The new values and, last, the status.
    attempt : Attempt
        What the task runs for.
    partitions : int
        How many partitions the state has.
    """

    steps: tuple[Step, ...]
    update: Update
    factory: StateFactory
    schema: pa.Schema
    attempt: Attempt
    partitions: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made: list[Row] = []
        try:
            given = [batch for batch in batches if batch.num_rows]
            partition = given[0].column(BUCKET)[0].as_py() if self._routed(given) else 0
            task = Task(self.attempt.record, partition, self.partitions)
            block = (
                whole(self.steps, blocks(given), task) if self.steps else block_of_batches(given)
            )
            with task.at(self.update.place):
                made, outcome = self._written(block, task)
            status: dict[str, Any] = {"keys": [outcome.read, outcome.written, outcome.cache_hits]}
            yield from self._new_values(made, task)
        except Exception as error:
            status = form_of(error)
        columns = [pa.nulls(1, field.type) for field in self.schema][:-1]
        columns.append(pa.array([self.attempt.seal.sealed(status)], pa.string()))
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _routed(self, given: list[pa.RecordBatch]) -> bool:
        return bool(given) and BUCKET in given[0].schema.names

    def _written(self, block: Block, task: Task) -> tuple[list[Row], Outcome]:
        if not block.length:
            return [], Outcome()
        state = self.factory.makeState({}, None, task.partition, task.partitions)
        try:
            before = counted([state])
            state.beginCommit(task.record)
            made = self.update.apply(state, block, task)
            state.commit(task.record)
            read, written, hits = (
                now - then for now, then in zip(counted([state]), before, strict=True)
            )
            return made, Outcome(0, read, written, hits)
        finally:
            state.close()

    def _new_values(self, made: list[Row], task: Task) -> Iterator[pa.RecordBatch]:
        names = self.schema.names[:-1]
        if not made or not names:
            return
        block = Block({}, dict(zip(names, zip(*made, strict=True), strict=True)), len(made))
        schema = pa.schema(list(self.schema)[:-1])
        makers = dict.fromkeys(names, self.update.place)
        for batch in record_batches(block, schema, makers, task):
            nulls = pa.nulls(batch.num_rows, pa.string())
            yield pa.RecordBatch.from_arrays([*batch.columns, nulls], schema=self.schema)


def whole(steps: Sequence[Step], given: Iterator[Block], task: Task) -> Block:
    """What steps that make all its columns make of a whole partition, as one block."""
    done = list(chained(steps, given, task))
    names = done[0].made_names if done else ()
    columns = {name: list(chain.from_iterable(b.values(name) for b in done)) for name in names}
    return Block({}, columns, sum(block.length for block in done))


def block_of_batches(batches: Sequence[pa.RecordBatch]) -> Block:
    """Record batches as one block."""
    if not batches:
        return Block({}, {}, 0)
    return block_of_table(pa.Table.from_batches(batches))


def judged(statuses: Iterable[str], seal: Seal) -> Outcome:
    """What the tasks of an update did together, or the error that weighs most.

    Raises
    ------
    StaleBatchError
        When any task was overtaken.
    TridentError
        What stopped a task.
    FailedException
        When tasks failed the attempt and nothing worse happened.
    StatusError
        For a status that no task of this attempt has sealed.
    """
    outcome, errors = Outcome(), []
    for status in statuses:
        match seal.opened(status):
            case {"keys": [int(read), int(written), int(hits)]}:
                outcome += Outcome(0, read, written, hits)
            case None:
                raise StatusError(status)
            case form:
                errors.append(error_of(form))
    if errors:
        raise min(errors, key=_weight)
    return outcome


def _weight(error: BaseException) -> int:
    if isinstance(error, StaleBatchError):
        return 0
    if not isinstance(error, FailedException):
        return 1
    # While a store is away nobody can tell that the batch is at fault.
    return 2 if isinstance(error, StateUnavailableError) else 3
