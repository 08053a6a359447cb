"""The Spark engine of one batch group: the same for both clocks."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import cast

import pyarrow as pa
from pyspark.sql import SparkSession

from trident.batch.outcome import Outcome
from trident.kernels.block import NOTHING, Block, joined
from trident.kernels.emission import Emission, Emitted, Emitting
from trident.kernels.task import step_name
from trident.kernels.type_check import type_check
from trident.open_states import close_states, counted
from trident.plan.nodes import Node, SourceNode, StateNode
from trident.spark.batch import SparkBatch
from trident.spark.error_transfer import of_spark
from trident.spark.flow import InputFrame
from trident.spark.group import GroupPlan
from trident.spark.quiet import TASKS, Quiet
from trident.spark.schemas import ROW, Schemas, frame_of
from trident.spark.stage import StageContext, array_of
from trident.spouts.source import Tuples
from trident.states.control import ControlRecord
from trident.states.state import State

SMALL = 10_000
"""Up to so many tuples one partition is faster than an exchange: a job's stage costs 50 ms."""


class SparkGroupEngine:
    """Runs the batches of a group as Spark jobs; lives on the driver.

    Parameters
    ----------
    group : GroupPlan
        The group.
    session : SparkSession
        Where the jobs run: a session of the engine's own for spouts, and for Spark's clock the
        one that its batches come with.
    states : mapping of node to State
        The group's states in this process: those that live here are updated through them, the
        others only read. Closed with the engine.
    """

    def __init__(
        self, group: GroupPlan, session: SparkSession, states: Mapping[StateNode, State]
    ) -> None:
        self.acts_on_nothing = bool(group.group.acting_on_nothing)
        self._group = group
        self._states = states
        self._emitting: dict[str, Emitting] = {}
        self._schemas = Schemas(session)
        self._session = session
        self._quiet = Quiet(session, *TASKS)

    def read(self, emission: Emission) -> tuple[Block, list[Emitted]]:
        """Emit partitions of a spout; see `GroupEngine.read`."""
        if emission.stream not in self._emitting:
            [source] = [
                each for each in self._group.group.sources if each.stream_id == emission.stream
            ]
            self._emitting[emission.stream] = Emitting(emission, step_name(source))
        emitting = self._emitting[emission.stream]
        made = list(emitting.emit(emission, emission.assignments))
        return joined(block for block, _ in made), [each for _, each in made]

    def run(self, record: ControlRecord, emitted: Mapping[str, Tuples]) -> Outcome:
        """Process one attempt whose tuples are on the driver; see `GroupEngine.run`."""
        tuples = sum(each.length for each in emitted.values())
        inputs: dict[Node, InputFrame] = {
            source: self._input(source, cast(Block, emitted.get(source.stream_id, NOTHING)), record)
            for source in self._group.group.sources
        }
        outcome = self.run_frames(record, inputs, small=tuples <= SMALL)
        return outcome + Outcome(tuples)

    def run_frames(
        self, record: ControlRecord, inputs: Mapping[Node, InputFrame], *, small: bool
    ) -> Outcome:
        """Process one attempt whose tuples are DataFrames.

        Parameters
        ----------
        record : ControlRecord
            What every state of the group has begun.
        inputs : mapping of node to InputFrame
            The tuples at the sources, or at later steps that Spark's clock ends with.
        small : bool
            Whether one partition will do.

        Raises
        ------
        OperationError
            What an operation raised, with the step, the batch and the tuple.
        FailedException
            The attempt failed.
        """
        before, started = counted(self._states.values()), perf_counter()
        context = StageContext(record)
        batch = SparkBatch(self._group, context, inputs, self._schemas, self._states, small=small)
        self._quiet.on()
        try:
            in_tasks = batch.run()
        except Exception as error:
            shown = of_spark(error, context.seal)
            if shown is error:
                raise
            raise shown from None
        finally:
            batch.release()
        # After a failure Spark still tells of the other tasks.
        self._quiet.off()
        read, written, hits = counted(self._states.values(), since=before)
        seconds = {"spark": perf_counter() - started}
        return in_tasks + Outcome(0, read, written, hits, seconds, "spark")

    def close(self) -> None:
        """Close the states."""
        self._quiet.off()
        close_states(self._states.values())

    def _input(self, source: SourceNode, block: Block, record: ControlRecord) -> InputFrame:
        """What a spout emitted, as a DataFrame of the columns that are needed."""
        names = self._group.needed[source]
        types = {name: source.fields.types[name] or "string" for name in names}
        schema = self._schemas.of(types)
        step, task = step_name(source), StageContext(record).task()
        check = type_check(source)
        if check is not None:
            block = check.apply(block, task)
        arrays = []
        for field in schema.arrow:
            if field.name == ROW:
                arrays.append(pa.nulls(block.length, field.type))
                continue
            arrays.append(array_of(block.values(field.name), field, step, task))
        table = pa.Table.from_arrays(arrays, schema=schema.arrow)
        slices = self._session.conf.get("spark.sql.leafNodeDefaultParallelism", None)
        most = int(slices or self._session.sparkContext.defaultParallelism)
        return InputFrame(frame_of(self._session, table, schema.struct), min(block.length, most))
