"""Runs one attempt of a batch on Spark: first its queries, then its updates and other ends."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from trident.batch.computed import DeferredUpdate
from trident.batch.outcome import Outcome
from trident.kernels.arrow_block import block_of_table
from trident.kernels.build import final_kernel, query_row, update_kernel
from trident.kernels.kernel import Kernel
from trident.kernels.query_row import QueryRow
from trident.kernels.task import StepName
from trident.kernels.type_check import with_type_check
from trident.kernels.update_kernel import UpdateKernel
from trident.operations.origins import ORIGIN
from trident.plan.field_type import field_type
from trident.plan.nodes import (
    AggregateNode,
    NewValuesNode,
    Node,
    PartitionNode,
    StateNode,
    StateQueryNode,
    StateUpdateNode,
)
from trident.plan.origins import watches_origins
from trident.plan.stages import unlabelled
from trident.spark.compile import Compiler
from trident.spark.flow import Flow, InputFrame
from trident.spark.group import GroupPlan, is_on_driver
from trident.spark.local_frame import local_frame
from trident.spark.look_ups import looked_up
from trident.spark.natives import combines_in_python, is_native
from trident.spark.query_kernel import TaskQueryKernel, view_of
from trident.spark.routing import POSITION, with_position
from trident.spark.schemas import Schemas, selected
from trident.spark.stage import StageContext, prepared, run_kernels
from trident.spark.statuses import STATUS
from trident.spark.update_stage import UpdateStage, judged, updated
from trident.states.maps.factory import MapStateFactory
from trident.states.state import State
from trident.states.values import StateType
from trident.tuples.block import NOTHING, Block, joined
from trident.windows.window_updater import WindowUpdater


class SparkBatch:
    """One attempt of one batch; made for it and used by the thread that runs it.

    Parameters
    ----------
    group : GroupPlan
        What stays the same from batch to batch.
    context : StageContext
        The attempt; made for it alone.
    inputs : mapping of node to InputFrame
        The tuples of the batch.
    schemas : Schemas
        Looks schemas up.
    states : mapping of node to State
        The group's states in this process.
    small : bool
        Whether one partition will do.
    """

    def __init__(
        self,
        group: GroupPlan,
        context: StageContext,
        inputs: Mapping[Node, InputFrame],
        schemas: Schemas,
        states: Mapping[StateNode, State],
        *,
        small: bool,
    ) -> None:
        self._group = group
        self._context = context
        assert context.record is not None
        self._record = context.record
        self._schemas = schemas
        self._states = states
        self._task = context.task()
        self._small = small
        self._compiler = Compiler(
            group, context, inputs, schemas, small=small, special=self._special
        )
        self._session: SparkSession = next(iter(inputs.values())).frame.sparkSession
        self._begun: list[tuple[State, StepName]] = []
        self._updated: dict[Node, Flow | None] = {}
        self._outcome = Outcome()

    def run(self) -> Outcome:
        """Run the attempt; return what tasks have read from and written to states.

        States are read before any is written. States that live on the driver are written last, so
        that a step that fails has written nothing there.
        """
        for query in self._group.queries:
            self._compiler.flow(query)
        for update in self._group.group.updates:
            self._update(update)
        self._run_ends()
        for state, step in self._begun:
            with self._task.at(step):
                state.commit(self._record)
        self._context.counted(self._task)
        return self._outcome

    def compute(self) -> tuple[DeferredUpdate, ...]:
        """Run all steps but the updates of states, which no step may read; return the updates.

        They are on the driver then; for states that are updated there.
        """
        updates = [DeferredUpdate(node, self._given(node)) for node in self._group.group.updates]
        self._run_ends()
        self._context.counted(self._task)
        return tuple([each for each in updates if _acts_on(each.node, each.block)])

    def release(self) -> None:
        """Release what the batch kept in the cluster."""
        self._compiler.release()

    def _run_ends(self) -> None:
        for end in self._group.ends:
            self._compiler.settled(end).frame.write.format("noop").mode("overwrite").save()

    def _special(self, node: Node) -> Flow:
        if isinstance(node, StateQueryNode):
            return self._query(node)
        assert isinstance(node, NewValuesNode)
        flow = self._update(node.parent)
        assert flow is not None
        hinted = self._group.hint(node)
        if hinted is None or hinted <= flow.partitions:
            return flow
        return replace(flow, frame=flow.frame.repartition(hinted), partitions=hinted)

    # Updates.

    def _update(self, node: StateUpdateNode) -> Flow | None:
        """Update a state, once; return the new values where a later step takes them."""
        if node not in self._updated:
            kernel = update_kernel(node, node.updater, self._group.kept_of(node))
            run = self._update_here if is_on_driver(node.state) else self._update_in_tasks
            self._updated[node] = run(node, kernel)
        return self._updated[node]

    def _update_here(self, node: StateUpdateNode, kernel: UpdateKernel) -> Flow | None:
        block = self._given(node)
        made = NOTHING
        if _acts_on(node, block):  # else the state has no part in the batch, as on the local engine
            state = self._states[node]
            state.beginCommit(self._record)
            self._begun.append((state, kernel.step))
            made = updated(kernel, state, block, self._task)
        if kernel.kept is None:
            return None
        types = {name: field_type(node, name) for name in kernel.kept}
        schema = self._schemas.of(types)
        frame = local_frame(self._session, schema, made, kernel.step, self._task)
        return Flow(frame.coalesce(1), dict(types), 1)

    def _given(self, node: StateUpdateNode) -> Block:
        """What an update takes, on the driver."""
        flow, before = self._before(node)
        block = block_of_table(flow.frame.toArrow())
        return joined(run_kernels(before, iter([block]), self._task)) if before else block

    def _update_in_tasks(self, node: StateUpdateNode, kernel: UpdateKernel) -> Flow | None:
        flow, before = self._before(node)
        key = self._key(node)
        count = self._count(node) if key else 1
        shards = node.state.factory.shards
        ordered = isinstance(node.updater, WindowUpdater) and flow.partitions > 1
        if ordered:
            typed = {**flow.types, POSITION: "long"}
            flow = replace(flow, frame=with_position(flow.frame), types=typed)
        if count == 1:
            flow = self._compiler.gathered(flow)
        elif shards is not None or not self._is_grouped(node, count, flow):
            flow = self._compiler.routed(flow, key, count, shards)
        names = kernel.kept or ()
        types = {name: field_type(node, name) for name in names}
        schema = self._schemas.of({**types, STATUS: "string"})
        factory = node.state.factory
        stage = UpdateStage(before, kernel, factory, schema.arrow, self._context, count)
        frame = flow.frame.sortWithinPartitions(POSITION) if ordered else flow.frame
        if node.facts.acts_on_nothing:
            frame = frame.coalesce(1)  # one partition even where there are no tuples
        frame = frame.mapInArrow(stage, schema.struct)
        if kernel.kept is None:
            self._judge(frame)
            return None
        frame = frame.localCheckpoint(eager=True)
        is_status = F.col(STATUS).isNotNull()
        self._judge(frame.where(is_status).select(STATUS))
        values = frame.where(~is_status)
        return Flow(selected(values, names), dict(types), count)

    def _judge(self, statuses: DataFrame) -> None:
        self._outcome += judged(statuses.toArrow().column(0).to_pylist(), self._context.seal)

    def _is_grouped(self, node: StateUpdateNode, count: int, flow: Flow) -> bool:
        """Whether each key is in one partition already, whichever that is.

        Catalyst's aggregate leaves it so, and a map state doesn't ask which partition a key is in.
        """
        aggregate = unlabelled(node.parent)
        return (
            isinstance(node.state.factory, MapStateFactory)
            and isinstance(aggregate, AggregateNode)
            and is_native(aggregate.aggregator)
            and flow.partitions == count
        )

    def _before(self, node: StateUpdateNode) -> tuple[Flow, tuple[Kernel, ...]]:
        """What an update takes, and the kernels that its tasks run first."""
        aggregate = self._group.aggregate_before(node)
        if aggregate is not None and combines_in_python(aggregate):
            names = (*(aggregate.group or ()), *aggregate.outputs)
            partial = self._compiler.partial(aggregate)
            flow = partial.settled(names, self._context, self._schemas)
            return flow, with_type_check(final_kernel(aggregate, aggregate.aggregator), aggregate)
        names = (*node.inputs.names, *([ORIGIN] if watches_origins(node) else ()))
        return self._compiler.settled(node.parent, names), ()

    def _key(self, node: StateUpdateNode) -> tuple[str, ...]:
        """The fields whose values say which partition of the state a tuple belongs to."""
        before = unlabelled(node.parent)
        if isinstance(before, PartitionNode):
            return before.by.names if before.by else ()
        if isinstance(before, AggregateNode):
            return before.group.names if before.group else ()
        return node.group.names if node.group else ()

    def _count(self, node: StateUpdateNode) -> int:
        """How many partitions update a state: the same in every batch, except for map states."""
        by_key = isinstance(node.state.factory, MapStateFactory)
        if self._small and by_key and not node.state.required_partitions:
            return 1
        return self._group.hint(node) or self._group.partitions

    # Queries.

    def _query(self, node: StateQueryNode) -> Flow:
        nodes = self._group.row(node)
        updates = [isinstance(each.state, StateUpdateNode) for each in nodes]
        states = [self._states[each.state] for each in nodes]
        if self._group.asks_here(node):
            views = [
                view_of(state, self._task, updated=updated)
                for state, updated in zip(states, updates, strict=True)
            ]

            def ask(row: QueryRow, asked: Block) -> Block:
                with ExitStack() as cleaning:
                    for query in row.queries:
                        cleaning.enter_context(prepared(query.step, query.operation, self._task))
                    return row.apply(views, asked, self._task)

            return looked_up(self._compiler, nodes, self._task, ask)
        row = query_row(nodes, [each.function for each in nodes], self._group.needed)
        factories = [each.state.state.factory for each in nodes]
        in_task = TaskQueryKernel(
            row.queries[0].step,
            node.function,
            row,
            tuple(zip(factories, updates, strict=True)),
        )
        steady = [
            updated and state.kind is StateType.OPAQUE
            for state, updated in zip(states, updates, strict=True)
        ]
        before = self._compiler.flow(nodes[0].parent)
        flow = before.then_all([in_task], nodes, deterministic=all(steady))
        # Spark would run the query when its rows are asked for: the state may be updated by then.
        return flow if steady == updates else self._compiler.kept(node, flow)


def _acts_on(node: StateUpdateNode, block: Block) -> bool:
    """Whether a batch's tuples update a state, or that there are none does."""
    return block.length > 0 or node.facts.acts_on_nothing
