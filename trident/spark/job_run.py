"""Runs a job on Spark, stage by stage: a DataFrame for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from trident.backends.rows.state import Receipt
from trident.batch.outcome import Outcome
from trident.job.job import (
    Broadcast,
    ByKey,
    Chosen,
    DeadLetters,
    Forward,
    Gather,
    Job,
    Join,
    Kernels,
    LookUp,
    NativeAggregate,
    NativeStep,
    Source,
    Spread,
    Stage,
    Step,
    Union,
    Update,
)
from trident.kernels.arrow_block import block_of_table
from trident.kernels.grouping_kernel import PARTITION
from trident.kernels.on_error import keeps_letters
from trident.kernels.task import Task
from trident.operations.counters import summed
from trident.operations.dead_letters import LETTER
from trident.operations.origins import ORIGIN
from trident.spark.access import checkpoint_frame, partitions_of
from trident.spark.exchanges import (
    add_origin,
    broadcast,
    collocate_keys,
    drop_partition,
    gather,
    move_to_chosen,
    route_by_key,
    spread,
)
from trident.spark.flow import Flow, InputFrame
from trident.spark.joins import find_conversions, native_join
from trident.spark.local_frame import local_frame
from trident.spark.natives import combine_first, native_aggregate, native_step
from trident.spark.query_kernel import TaskQueryKernel
from trident.spark.routing import POSITION, add_position
from trident.spark.schemas import Schemas, create_frame, quote, select_columns
from trident.spark.stage import StageContext, run_kernels
from trident.spark.statuses import STATUS
from trident.spark.update_stage import UpdateStage, sum_statuses
from trident.spark.versions import collect_table
from trident.tuples.block import Block, joined
from trident.tuples.fields import Fields

_PARTITION = Fields.typed([(PARTITION, "int")])
Ask = Callable[[LookUp, Block, Task], Block]
"""Asks states in this process for distinct inputs; adds the answers to these."""
Write = Callable[[Update, Block, Task], Block]
"""Updates a state in this process, or notes the update; returns the kept new values."""


class JobRun:
    """One attempt or request, used by one thread; `ask` and `write` reach states in this
    process."""

    def __init__(
        self,
        job: Job,
        partitions: int,
        context: StageContext,
        inputs: Mapping[str, InputFrame],
        schemas: Schemas,
        session: SparkSession,
        ask: Ask,
        write: Write | None = None,
    ) -> None:
        self._job = job
        self._partitions = partitions
        self._context = context
        self._inputs = inputs
        self._schemas = schemas
        self._session = session
        self._ask = ask
        self._write = write
        self._task = context.task()
        self._flows: list[Flow] = []
        self._persisted: list[DataFrame] = []
        self._letters: list[DataFrame] = []
        self._outcome = Outcome()
        self.receipts: dict[str, Receipt] = {}
        """What tasks have written of rows, by state."""

    def run(self) -> Outcome:
        """Run all stages, reading states before any is updated; return what tasks did to these."""
        for stage in self._job.stages:
            self._flows.append(self._run_stage(stage))
        counted = self._task.counters.take() if self._task.counters is not None else {}
        in_tasks = summed(self._context.take_counts(), self._counted_in_rows())
        return self._outcome + Outcome(counters=summed(counted, in_tasks))

    def _counted_in_rows(self) -> Mapping[str, int]:
        """Return what tasks have counted, if their output has it."""
        if self._context.counts is not None or not self._letters:
            return {}
        rows = reduce(DataFrame.union, self._letters)
        counts = rows.where(F.col(LETTER.names[0]).isNull()).select(LETTER.names[-1])
        return reduce(summed, map(json.loads, collect_table(counts).column(0).to_pylist()), {})

    def result(self) -> Block:
        """Return the tuples of the result."""
        assert self._job.result is not None
        stage = self._job.stages[self._job.result]
        flow = self._settle(self._flows[stage.id], stage.columns.names)
        return block_of_table(collect_table(flow.frame))

    def release(self) -> None:
        """Release what was kept in the cluster, and counted."""
        for frame in self._persisted:
            frame.unpersist()
        self._context.take_counts()  # of an attempt that has failed

    def _run_stage(self, stage: Stage) -> Flow:
        flow = self._bring_in(stage)
        if isinstance(stage.exchange, Source):
            columns = stage.exchange.columns.names
        elif isinstance(stage.exchange, Forward):
            columns = self._job.stages[stage.inputs[0]].columns.names
        else:
            columns = tuple([name for name in flow.types if name != PARTITION])
        for step in stage.steps:
            flow = self._run_step(stage, step, flow, columns)
            columns = step.columns.names
        if stage.update is not None:
            return flow
        if stage.readers > 1:
            return self._keep(stage, flow, stage.columns.names)
        if not stage.readers and (stage.steps or not flow.kept):
            end = self._settle(flow, stage.columns.names)
            end.frame.write.format("noop").mode("overwrite").save()
        return flow

    def _settle(self, flow: Flow, names: Sequence[str]) -> Flow:
        settled = flow.settle(names, self._context, self._schemas)
        if settled.letters is not None:
            self._letters.append(settled.letters)
        return replace(settled, letters=None)

    def _settle_packed(self, flow: Flow, names: Sequence[str]) -> Flow:
        """Do the same for what comes to the driver."""
        if not flow.kernels or flow.has_reports(self._context):
            return self._settle(flow, names)
        return flow.settle_packed(names, self._context, self._schemas)

    def _keep(self, stage: Stage, flow: Flow, names: Sequence[str]) -> Flow:
        """Persist a flow that is read twice, so that it is made once; checkpoint it if another
        run would make another one."""
        if flow.kept:
            return flow
        flow = self._settle(flow, names)
        if flow.kept:
            return flow
        if not stage.repeatable:
            return replace(flow, frame=checkpoint_frame(flow.frame), kept=True)
        # Spark keeps one copy of equal plans: a user's own cache() must not end with the batch.
        own = F.lit(uuid4().hex)
        frame = flow.frame.where(own == own).persist()
        self._persisted.append(frame)
        return replace(flow, frame=frame, kept=True)

    # How tuples come into a stage.

    def _bring_in(self, stage: Stage) -> Flow:
        exchange = stage.exchange
        match exchange:
            case Source():
                return self._begin(stage, exchange)
            case DeadLetters():
                return self._collect_letters()
            case Forward(least):
                return self._forward(stage, least)
            case ByKey() | Gather():
                return self._move_by_key(stage, exchange)
            case Union():
                return self._unite(stage, exchange)
            case Join():
                return self._join(stage, exchange)
            case Chosen():
                return self._move_to_chosen(stage, exchange)
        flow, count = self._input(stage, 0), self._count(stage)
        if isinstance(exchange, Broadcast):
            return broadcast(flow, count)
        assert isinstance(exchange, Spread)
        return spread(flow, count, settled=exchange.settled)

    def _count(self, stage: Stage) -> int:
        assert stage.partitions is not None  # an exchange knows how many it makes
        return stage.partitions

    def _input(self, stage: Stage, place: int) -> Flow:
        """Return an input of a stage as a DataFrame."""
        before = self._job.stages[stage.inputs[place]]
        return self._settle(self._flows[before.id], before.columns.names)

    def _begin(self, stage: Stage, source: Source) -> Flow:
        given = self._inputs[source.stream]
        frame, partitions = given.frame, given.partitions
        if stage.hint is None and (stage.partitions == 1 or partitions <= 1):
            # One partition even where there was none, so that a task aggregates a batch of no rows.
            frame, partitions = frame.coalesce(1), 1
        elif stage.hint is not None and not given.kernels:  # else its tasks have emitted it
            frame, partitions = frame.repartition(stage.hint), stage.hint
        types = source.columns.types
        return Flow(frame, types, partitions, given.kernels, kept=source.kept)

    def _collect_letters(self) -> Flow:
        """Return the dead letters of all stages, which have run."""
        schema = self._schemas.of_fields(LETTER)
        frame = reduce(
            DataFrame.union, self._letters, create_frame(self._session, [], schema.struct)
        )
        frame = frame.where(F.col(LETTER.names[0]).isNotNull())
        return Flow(frame.coalesce(1), LETTER.types, 1, kept=True)

    def _forward(self, stage: Stage, least: int | None) -> Flow:
        flow = self._flows[stage.inputs[0]]
        if least is None or least <= flow.partitions:
            return flow
        return flow.with_frame(flow.frame.repartition(least), least)

    def _move_by_key(self, stage: Stage, exchange: ByKey | Gather) -> Flow:
        if stage.steps and isinstance(stage.steps[0], NativeAggregate):
            return self._flows[stage.inputs[0]]
        if isinstance(exchange, Gather) and exchange.on_driver:
            return self._combine(stage, exchange, self._settle_packed)
        flow, update = self._combine(stage, exchange, self._settle), stage.update
        if update is not None and update.ordered and flow.partitions > 1:
            typed = {**flow.types, POSITION: "long"}
            flow = replace(flow, frame=add_position(flow.frame), types=typed)
        count = self._count(stage)
        if isinstance(exchange, Gather):
            return gather(flow)
        if exchange.grouped and flow.partitions == count:
            return flow
        if not exchange.stable:
            return collocate_keys(flow, exchange.key, count)
        shards = update.state.factory.shards if update is not None else None
        flow = route_by_key(flow, exchange.key, count, self._schemas, self._context, shards)
        return drop_partition(flow) if update is None else flow

    def _combine(self, stage: Stage, exchange: ByKey | Gather, settle: Callable[..., Flow]) -> Flow:
        """Return what moves: the aggregates of partitions, if these combine first."""
        kernel, flow = exchange.combine, self._flows[stage.inputs[0]]
        if kernel is None:
            names = self._job.stages[stage.inputs[0]].columns.names
            moved = names if stage.update is None else stage.update.reads.names
        else:
            moved = (*kernel.group, *kernel.outputs)
            makes, deterministic = stage.steps[0].makes, kernel.operation.deterministic
            flow = flow.then([kernel], kernel.step, makes, deterministic=deterministic)
        return settle(flow, moved)

    def _move_to_chosen(self, stage: Stage, exchange: Chosen) -> Flow:
        kernel = exchange.kernel
        flow = self._flows[stage.inputs[0]].then(
            [kernel],
            kernel.step,
            _PARTITION,
            deterministic=kernel.operation.deterministic,
        )
        flow = self._settle(flow, (*kernel.carried, PARTITION))
        return move_to_chosen(flow, kernel.carried, kernel.count)

    def _unite(self, stage: Stage, union: Union) -> Flow:
        for number in {each for each in stage.inputs if stage.inputs.count(each) > 1}:
            before, flow = self._job.stages[number], self._flows[number]
            self._flows[number] = self._keep(before, flow, before.columns.names)
        flows = [
            self._select_input(stage, place, names) for place, names in enumerate(union.columns)
        ]
        frames = [
            flow.frame.withColumns({name: to(F.col(quote(name))) for name, to in own.items()})
            if own
            else flow.frame
            for flow, own in zip(flows, find_conversions(flows, union.columns), strict=True)
        ]
        names = union.names
        first = frames[0].toDF(*names) if names else frames[0]
        frame = reduce(lambda one, other: one.union(other), frames[1:], first)
        types = dict.fromkeys(names)
        if stage.hint is not None:
            return Flow(frame.repartition(stage.hint), types, stage.hint)
        partitions = sum(flow.partitions for flow in flows)
        # Coalesced, all partitions of a stage would run in task 0, each as partition 0.
        if stage.partitions == 1 and partitions == len(flows):
            return Flow(frame.coalesce(1), types, 1)
        return Flow(frame, types, partitions)

    def _select_input(self, stage: Stage, place: int, names: Sequence[str]) -> Flow:
        """Return an input of a union with these columns; add `ORIGIN` if it has none."""
        before = self._job.stages[stage.inputs[place]]
        flow = self._flows[before.id]
        if ORIGIN not in names or ORIGIN in before.columns.names:
            return self._settle(flow, names)
        flow = self._settle(flow, [name for name in names if name != ORIGIN])
        return add_origin(flow, names)

    def _join(self, stage: Stage, join: Join) -> Flow:
        flows = []
        for place, number in enumerate(stage.inputs):
            flow = self._input(stage, place)
            if stage.inputs.count(number) > 1:
                before = self._job.stages[number]
                flow = self._flows[number] = self._keep(before, flow, before.columns.names)
            flows.append(flow)
        kernel = join.kernel
        types = {
            name: flows[of[0][0]].types[of[0][1]] if len(of) == 1 else None
            for name, of in kernel.columns.items()
        }
        converted = find_conversions(flows, kernel.keys)
        frame = native_join([flow.frame for flow in flows], converted, kernel)
        hint = stage.hint
        if all(flow.partitions == 1 for flow in flows):
            frame, partitions = frame.coalesce(1), 1  # which it is, where Spark knows that it can
        else:
            partitions = partitions_of(frame)
        if not partitions:  # Spark doesn't say, as of full joins that compare each with each
            partitions = max(flow.partitions for flow in flows)
            frame = frame.repartition(partitions)
        if hint is not None and hint != partitions:
            frame, partitions = frame.repartition(hint), hint
        return Flow(frame, types, partitions)

    # What runs in a stage.

    def _run_step(self, stage: Stage, step: Step, flow: Flow, columns: Sequence[str]) -> Flow:
        """Return the output of a step, which takes these columns."""
        match step:
            case Kernels():
                deterministic = step.deterministic
                return flow.then(step.kernels, step.name, step.makes, deterministic=deterministic)
            case LookUp() if step.on_driver:
                flow = self._keep(stage, self._settle(flow, columns), columns)
                return self._look_up_here(step, flow)
            case LookUp():
                return self._look_up_in_tasks(step, flow)
            case NativeStep():
                flow = self._settle(flow, columns)
                made = step.makes.names
                others = [name for name in step.columns if name not in made]
                types = {name: flow.types[name] for name in others} | dict.fromkeys(made)
                frame = native_step(flow.frame, step)
                return replace(flow, frame=frame, types=types, kept=False)
            case NativeAggregate():
                step, flow = combine_first(step, flow)
                reads = tuple(dict.fromkeys((*step.group, *step.inputs)))
                return self._aggregate(stage, step, self._settle(flow, reads))
            case Update() if step.on_driver:
                return self._update_here(step, flow)
            case Update():
                return self._update_in_tasks(stage, step, flow)
        raise NotImplementedError(step)

    def _aggregate(self, stage: Stage, step: NativeAggregate, flow: Flow) -> Flow:
        frame = native_aggregate(flow.frame, step, self._context)
        partitions = 1 if flow.partitions == 1 or not step.group else self._partitions
        count = self._count(stage)
        if count < partitions:
            frame, partitions = frame.coalesce(count), count
        names = (*step.group, *step.makes.names)
        flow = Flow(frame, dict.fromkeys(names), partitions)
        # Catalyst leaves groups in the one partition that they come from.
        return (
            collocate_keys(flow, step.group, count)
            if count > partitions and not step.stays
            else flow
        )

    def _look_up_in_tasks(self, step: LookUp, flow: Flow) -> Flow:
        query = step.row.queries[0]
        factories = [state.factory for state in step.states]
        kernel = TaskQueryKernel(
            query.step,
            query.operation,
            step.row,
            tuple(zip(factories, step.updated, strict=True)),
        )
        flow = flow.then([kernel], step.name, step.makes, deterministic=step.deterministic)
        return self._settle(flow, step.columns.names) if step.is_urgent else flow

    def _look_up_here(self, step: LookUp, flow: Flow) -> Flow:
        """Ask states for the distinct inputs of a step, in this process, and join the answers."""
        queries, needed = step.row.queries, step.columns.names
        inputs = tuple(dict.fromkeys(name for each in queries for name in each.inputs.names))
        if inputs:
            asked = block_of_table(collect_table(select_columns(flow.frame, inputs).distinct()))
        else:
            asked = Block({}, 1)
        made = self._ask(step, asked, self._task)
        keys = {name: f"__trident_key{index}" for index, name in enumerate(inputs)}
        outputs = [name for each in queries for name in each.outputs if name in needed]
        types = {keys[name]: kind for name, kind in flow.types_of(inputs).items()}
        types |= {name: str(step.columns.types[name]) for name in outputs}
        renamed = made.renamed({**keys, **dict(zip(outputs, outputs, strict=True))})
        schema = self._schemas.of(types)
        found = local_frame(self._session, schema, renamed, queries[-1].step, self._task)
        found = found.coalesce(1)
        condition = F.lit(True)
        for name, key in keys.items():
            condition &= flow.frame[quote(name)].eqNullSafe(found[key])
        both = flow.frame.join(found, condition, "inner")
        kinds = {name: flow.types.get(name, types.get(name)) for name in needed}
        return replace(flow, frame=select_columns(both, needed), types=kinds, kept=False)

    # Updates.

    def _update_here(self, step: Update, flow: Flow) -> Flow:
        assert self._write is not None
        block = block_of_table(collect_table(flow.frame))
        if flow.kernels:
            block = joined(run_kernels(flow.kernels, iter([block]), self._task))
        made = self._write(step, block, self._task)
        if step.kernel.kept is None:
            return flow
        schema = self._schemas.of_fields(step.columns)
        frame = local_frame(self._session, schema, made, step.name, self._task)
        return Flow(frame.coalesce(1), step.columns.types, 1)

    def _update_in_tasks(self, stage: Stage, step: Update, flow: Flow) -> Flow:
        if keeps_letters(flow.kernels):  # the task of an update reports its status only
            flow = self._settle(flow, step.reads.names)
        names = step.columns.names
        types = {name: str(kind) for name, kind in step.columns.types.items()}
        count = stage.partitions or flow.partitions
        schema = self._schemas.of({**types, STATUS: "string"})
        tasks = UpdateStage(
            flow.kernels, step.kernel, step.state.factory, schema.arrow, self._context, count
        )
        frame = flow.frame
        if POSITION in flow.types:
            frame = frame.sortWithinPartitions(POSITION)
        if step.kernel.operation.acts_on_nothing:
            frame = frame.coalesce(1)  # one partition even where there are no tuples
        frame = frame.mapInArrow(tasks, schema.struct)
        if step.kernel.kept is None:
            self._read_statuses(step, frame)
            return flow
        frame = checkpoint_frame(frame)
        is_status = F.col(STATUS).isNotNull()
        self._read_statuses(step, frame.where(is_status).select(STATUS))
        values = frame.where(~is_status)
        return Flow(select_columns(values, names), step.columns.types, count, kept=True)

    def _read_statuses(self, step: Update, statuses: DataFrame) -> None:
        found = collect_table(statuses).column(0).to_pylist()
        outcome, self.receipts[step.state.name] = sum_statuses(found, self._context.seal)
        self._outcome += outcome
