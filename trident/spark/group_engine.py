"""The Spark engine of one batch group: the same for both clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock
from time import perf_counter
from typing import cast

from pyspark.sql import SparkSession

from trident.backends.rows.state import RowsState
from trident.batch.computed import (
    BegunStates,
    Computed,
    Computing,
    DeferredUpdate,
    Postponed,
    write_updates,
)
from trident.batch.outcome import Counters, Outcome, counted_apart
from trident.batch.states import close_states
from trident.job.job import Job, Kernels, LookUp, Source, Update
from trident.kernels.task import Task
from trident.operations.counters import CounterBook
from trident.operations.origins import with_origin
from trident.plan.nodes import StateNode
from trident.plan.overlap import begins_first, updated_elsewhere
from trident.sources.emission import Emission, Emitted
from trident.sources.source import Tuples
from trident.spark.access import access_to
from trident.spark.checks import SparkGroup
from trident.spark.counts import AttemptCounts, make_accumulator
from trident.spark.error_transfer import error_to_show
from trident.spark.flow import InputFrame
from trident.spark.job_run import JobRun, Write
from trident.spark.kept_tuples import KeptTuples, emit_in_tasks
from trident.spark.local_frame import local_frame, local_table
from trident.spark.packed import PackedRowsKernel, packed_frame
from trident.spark.query_kernel import view_state
from trident.spark.quiet import TASKS, Quiet
from trident.spark.schemas import Schemas
from trident.spark.seal import Seal
from trident.spark.stage import StageContext, prepare_operation
from trident.spark.staged_updates import pack_updates, unpack_updates
from trident.spark.update_stage import update_state
from trident.states.control import ControlRecord
from trident.states.state import State
from trident.tuples.block import NOTHING, Block

SMALL = 10_000
"""The most tuples that one partition runs faster than an exchange: a job's stage costs 50 ms.

Also the most keys that the driver writes faster than tasks, which are handed to workers first.
"""


@dataclass(frozen=True)
class BatchInput:
    """The tuples of a batch as DataFrames, by stream."""

    frames: Mapping[str, InputFrame]
    small: bool
    """Whether one partition runs the batch."""
    tuples: int = 0
    seconds: float = 0.0
    """How long it took to make the frames."""
    release: Callable[[], None] = lambda: None
    """Called when the frames have been read."""


class SparkGroupEngine:
    """Runs the batches of a group as Spark jobs; lives on the driver.

    The session is the engine's own for spouts, and for Spark's clock the one that its batches come
    with. States that live here are updated through `states`, the others only read; they are closed
    with the engine. Where it is `partitioned`, small batches run in all partitions too.
    """

    def __init__(
        self,
        group: SparkGroup,
        session: SparkSession,
        states: Mapping[StateNode, State],
        partitioned: bool = False,
    ) -> None:
        self.acts_on_nothing = bool(group.group.acting_on_nothing)
        self._group = group
        self._partitioned = partitioned
        self._states = {node.state.name: state for node, state in states.items()}
        whole = group.group
        self._begins_first = bool(updated_elsewhere(whole) or begins_first(whole))
        self._counters = Counters(states.values())
        self._updated, self._asked = counted_apart(states)
        self._schemas = Schemas(session)
        self._session = session
        self._accumulator = make_accumulator(session)
        self._quiet = Quiet(session, *TASKS)
        self._kept: dict[tuple[str, int], KeptTuples] = {}
        self._few = False
        self._asking = Lock()
        self._beside: ThreadPoolExecutor | None = None
        self._latest: int | None = None
        self._counting = Lock()
        self._asked_before = self._asked.counts()

    def overlap(self, batches: int) -> None:
        """Run the jobs of several batches of spouts at once, from the second batch on."""
        self._beside = ThreadPoolExecutor(batches, f"trident-{self._group.group.id}-compute")

    def read(self, emission: Emission) -> tuple[Tuples, list[Emitted]]:
        """Emit partitions of a spout, on the executors; see `GroupEngine.read`."""
        if not emission.assignments:
            return NOTHING, []
        begin = self._group.large.beginning(emission.stream)
        assert isinstance(begin.exchange, Source)
        tasks = begin.hint or min(len(emission.assignments), self._parallelism)
        seal = Seal()
        with self._shown(seal):
            kept, emitted = emit_in_tasks(
                emission,
                begin.exchange,
                tasks,
                self._session,
                self._schemas,
                seal,
            )
        key = (emission.stream, emission.token.txid)
        self._release(key)  # what an earlier attempt has emitted
        if not kept.length:
            kept.release()
            return NOTHING, emitted
        self._kept[key] = kept
        return kept, emitted

    def compute(
        self, record: ControlRecord, emitted: Mapping[str, Tuples]
    ) -> Computed | Computing | Postponed:
        """Run all steps of a batch of spouts but its updates; see `GroupEngine.compute`."""
        if self._beside is None or self._latest is None:  # the size of a batch is not known yet
            return self._compute(record, emitted)
        return Computing(self._beside.submit(self._compute, record, emitted), self._latest)

    def _compute(
        self, record: ControlRecord, emitted: Mapping[str, Tuples]
    ) -> Computed | Postponed:
        started = perf_counter()
        frames = {
            source.stream: self._input(source, emitted.get(source.stream, NOTHING), record)
            for source in self._group.large.sources
        }
        tuples = sum(each.length for each in emitted.values())
        small = tuples <= SMALL and not self._partitioned
        release = partial(self._release, *((each, record.token.txid) for each in emitted))
        given = BatchInput(frames, small, tuples, perf_counter() - started, release)
        return self.compute_input(record, given)

    def compute_input(self, record: ControlRecord, given: BatchInput) -> Computed | Postponed:
        """Run all steps but updates, or postpone them."""
        if self._begins_first:
            return Postponed("spark", given.tuples, partial(self._run, given))
        updates: list[DeferredUpdate] = []

        def note(update: Update, block: Block, task: Task) -> Block:
            if update.kernel.acts_on(block):
                updates.append(DeferredUpdate(update, block))
            return NOTHING  # no step may take its new values

        started = perf_counter()
        try:
            job = self._group.small if given.small else self._group.large
            with self._batch(job, record, given.frames, note) as batch:
                ran = batch.run()
        finally:
            given.release()
        with self._counting:  # a batch beside this one may count what this one has done
            counts = self._asked.since(self._asked_before)
            self._asked_before = self._asked.counts()
        seconds = {"spark": given.seconds + perf_counter() - started}
        outcome = Outcome(given.tuples, *counts, seconds, "spark")
        computed = Computed(tuple(updates), ran + outcome)
        if self._beside is not None:
            self._latest = computed.nbytes
        return computed

    def _run(self, given: BatchInput, record: ControlRecord) -> Outcome:
        """Run the jobs of a batch that has begun: they write the states.

        Where the batch before has written few keys, the driver writes what Catalyst aggregates. If
        that is more than Spark gives to a driver, the attempt fails, and in the next one tasks
        write.
        """
        group, few, self._few = self._group, self._few, False
        job = group.small if given.small else group.few if few else group.large
        before, started = self._counters.counts(), perf_counter()
        try:
            begun = BegunStates(job.updates, self._states, record)

            def write(update: Update, block: Block, task: Task) -> Block:
                if not update.kernel.acts_on(block):
                    return NOTHING  # the state has no part in the batch
                return update_state(update.kernel, begun.begin(update.state.name), block, task)

            with self._batch(job, record, given.frames, write) as batch:
                in_tasks = batch.run()
                begun.commit()
            for name, receipt in batch.receipts.items():
                if isinstance(state := self._states[name], RowsState):
                    state.take(record.token, receipt)
        finally:
            given.release()
        counts = self._counters.since(before)
        seconds = {"spark": given.seconds + perf_counter() - started}
        reached = self._counters.reached(record.token)
        outcome = in_tasks + Outcome(given.tuples, *counts, seconds, "spark", reached=reached)
        self._few = outcome.written <= SMALL
        return outcome

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Make the updates of a batch, or run its jobs; see `GroupEngine.write`."""
        if isinstance(computed, Postponed):
            return computed.run(record)
        counters = CounterBook()
        update = partial(_update, counters)
        outcome = write_updates(computed, record, self._states, self._updated, update)
        counted = counters.take()
        return outcome + Outcome(counters=counted) if counted else outcome

    def packed(self, computed: Computed) -> Mapping[str, bytes | memoryview]:
        """Return what is needed to make the updates; see `StagingEngine.packed`."""
        return pack_updates(self._group.large, computed, self._schemas)

    def unpacked(self, parts: Mapping[str, bytes | memoryview]) -> Computed:
        """Return what :meth:`packed` was given; see `StagingEngine.unpacked`."""
        return unpack_updates(self._group.large, parts)

    def drop(self, emitted: Mapping[str, Tuples]) -> None:
        """Let go of tuples that are on executors."""
        self._release(*(key for key, kept in self._kept.items() if kept is emitted.get(key[0])))

    def close(self) -> None:
        """Let go of what was emitted and not run, and close the states."""
        if self._beside is not None:
            self._beside.shutdown(cancel_futures=True)
        self._quiet.close()
        try:
            self._release(*self._kept)
        finally:
            access_to(self._session).end()
            close_states(self._states.values())

    @contextmanager
    def _batch(
        self,
        job: Job,
        record: ControlRecord,
        inputs: Mapping[str, InputFrame],
        write: Write,
    ) -> Iterator[JobRun]:
        counts = None if self._accumulator is None else AttemptCounts(self._accumulator)
        context = StageContext(record, counts=counts)
        run = JobRun(
            job,
            self._group.partitions,
            context,
            inputs,
            self._schemas,
            next(iter(inputs.values())).frame.sparkSession,
            self._ask,
            write,
        )
        with self._shown(context.seal):
            try:
                yield run
            finally:
                run.release()

    def _ask(self, look_up: LookUp, inputs: Block, task: Task) -> Block:
        """Add to inputs what states of this process answer."""
        with self._asking, ExitStack() as cleaning:  # a state is used by one thread at a time
            views = [
                view_state(self._states[state.name], task, updated=updated)
                for state, updated in zip(look_up.states, look_up.updated, strict=True)
            ]
            for query in look_up.row.queries:
                cleaning.enter_context(prepare_operation(query.step, query.operation, task))
            return look_up.row.apply(views, inputs, task)

    def _release(self, *keys: tuple[str, int]) -> None:
        """Release what streams have emitted on executors in some batches."""
        for key in keys:
            if (kept := self._kept.pop(key, None)) is not None:
                kept.release()

    @contextmanager
    def _shown(self, seal: Seal) -> Iterator[None]:
        """Raise what a user should see for an error of Spark's, and keep Spark from logging it."""
        self._quiet.on()
        try:
            yield
        except Exception as error:
            shown = error_to_show(error, seal)
            if shown is error:
                raise
            raise shown from None
        # After a failure Spark still logs the errors of other tasks.
        self._quiet.off()

    @property
    def _parallelism(self) -> int:
        """How many tasks Spark makes where nothing else is said."""
        slices = self._session.conf.get("spark.sql.leafNodeDefaultParallelism", None)
        return int(slices or self._group.tasks)

    def _input(self, source: Source, tuples: Tuples, record: ControlRecord) -> InputFrame:
        """Return what a spout has emitted, as a DataFrame of the columns that are needed."""
        if isinstance(tuples, KeptTuples):
            return InputFrame(tuples.rows, tuples.partitions, (tuples.kernel,))
        block, names = cast(Block, tuples), source.columns.names
        schema = self._schemas.of_fields(source.columns)
        step, task = source.name, StageContext(record).task()
        if source.check is not None:
            block = source.check.apply(block, task)
        if source.origin is not None:
            block = with_origin(block, names, source.origin)
        partitions = min(block.length, self._parallelism)
        stage = self._group.large.beginning(source.stream)
        in_python = bool(stage.steps) and isinstance(stage.steps[0], Kernels)
        if in_python and stage.hint is None and block.length > SMALL:
            table = local_table(schema, block, step, task)
            frame = packed_frame(self._session, table, partitions)
            return InputFrame(frame, partitions, (PackedRowsKernel(step, None, schema.arrow),))
        return InputFrame(local_frame(self._session, schema, block, step, task), partitions)


def _update(counters: CounterBook, deferred: DeferredUpdate, state: State, task: Task) -> None:
    update_state(deferred.update.kernel, state, deferred.block, task._replace(counters=counters))
