"""Makes DataFrames of the steps of a batch group, for each batch anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce, singledispatchmethod
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trident.errors import PlanError
from trident.kernels.arrow_kernel import arrow_kernel
from trident.kernels.build import (
    TupleNode,
    aggregate_kernel,
    final_kernel,
    grouping_kernel,
    tuple_kernel,
)
from trident.kernels.grouping_kernel import PARTITION
from trident.kernels.kernel import Kernel
from trident.operations.interfaces import CustomStreamGrouping
from trident.operations.origins import MADE, ORIGIN
from trident.operations.vectorised import Vectorised
from trident.plan.needed_fields import merged_names, type_of
from trident.plan.nodes import (
    AggregateNode,
    DRPCNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    JoinNode,
    MapNode,
    MergeNode,
    NameNode,
    NativeNode,
    NewValuesNode,
    Node,
    PartitionAggregateNode,
    PartitionNode,
    PeekNode,
    ProjectNode,
    SourceNode,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
    StaticStreamNode,
)
from trident.spark.common_types import conversions
from trident.spark.flow import Flow, InputFrame
from trident.spark.group import GroupPlan
from trident.spark.joins import native_join, partitions_of
from trident.spark.natives import combines_in_python, is_native, native_aggregate, native_step
from trident.spark.routing import by_key
from trident.spark.schemas import Schemas, quoted, selected
from trident.spark.stage import StageContext

_ELSEWHERE = (DRPCNode, SourceNode, StateUpdateNode, StaticStateNode, StaticStreamNode)
"""Steps without a way here: sources' tuples are given, and `SparkBatch` updates states."""


def check_steps(nodes: Iterable[Node]) -> None:
    """Spark can run each step.

    Raises
    ------
    PlanError
        For a kind of step that it doesn't know.
    """
    way_of = Compiler.__dict__["_flow"].dispatcher.dispatch
    for node in nodes:
        if way_of(type(node)) is way_of(Node) and not isinstance(node, _ELSEWHERE):
            what = f"{node.origin.call} at {node.origin}: Spark can't run a"
            advice = "Tell it how, in trident/spark/compile.py."
            raise PlanError(what, type(node).__name__, (), advice)


class Compiler:
    """Makes the DataFrames of one attempt; used by the thread that runs it.

    Parameters
    ----------
    group : GroupPlan
        What stays the same from batch to batch.
    context : StageContext
        The attempt.
    inputs : mapping of node to InputFrame
        The tuples of the batch: at the sources, or at the step up to which Spark's own clock has
        run them already.
    schemas : Schemas
        Looks schemas up.
    small : bool
        Whether one partition will do, which saves every exchange.
    special : callable
        Gives the flow of a step that reads a state or its new values.
    """

    def __init__(
        self,
        group: GroupPlan,
        context: StageContext,
        inputs: Mapping[Node, InputFrame],
        schemas: Schemas,
        *,
        small: bool,
        special: Callable[[Node], Flow],
    ) -> None:
        self.group = group
        self.context = context
        self.schemas = schemas
        self._small = small
        self._special = special
        self._flows: dict[Node, Flow] = {}
        self._persisted: list[DataFrame] = []
        for node, given in inputs.items():
            self._flows[node] = self._begun(node, given)

    def flow(self, node: Node) -> Flow:
        """The output of a step; made once, so that several consumers see the same."""
        if node not in self._flows:
            made = self._flow(node)
            if self.group.is_shared(node):
                made = self.kept(node, made)
            self._flows[node] = made
        return self._flows[node]

    def settled(self, node: Node, names: Iterable[str] | None = None) -> Flow:
        """The output of a step as a DataFrame of these columns, by default all that are needed."""
        wanted = self.group.needed[node] if names is None else tuple(names)
        return self.flow(node).settled(wanted, self.context, self.schemas)

    def kept(self, node: Node, flow: Flow) -> Flow:
        """The flow, persisted, so that what is read twice is made once.

        Where making it again may give other rows it is checkpointed: then the loss of a block fails
        the attempt.
        """
        flow = flow.settled(self.group.needed[node], self.context, self.schemas)
        if self.group.is_deterministic(node):
            # Spark keeps one copy of equal plans: a user's own cache() must not end with the batch.
            own = F.lit(uuid4().hex)
            frame = flow.frame.where(own == own).persist()
            self._persisted.append(frame)
            return replace(flow, frame=frame)
        return replace(flow, frame=flow.frame.localCheckpoint(eager=True))

    def twice(self, node: Node) -> Flow:
        """The output of a step, kept where reading it twice would make it twice."""
        flow = self.settled(node)
        if self.group.is_shared(node) or _is_there(node):
            return flow
        self._flows[node] = self.kept(node, flow)
        return self._flows[node]

    def release(self) -> None:
        """Release what was persisted."""
        for frame in self._persisted:
            frame.unpersist()

    def _begun(self, node: Node, given: InputFrame) -> Flow:
        frame, partitions = given.frame, given.partitions
        names = self.group.needed[node]
        types = {name: type_of(node, name) for name in names}
        hinted = self.group.hint(node)
        if hinted is None and (self._small or partitions <= 1):
            # One partition even where there was none, so that a task aggregates a batch of no rows.
            frame, partitions = frame.coalesce(1), 1
        elif hinted is not None and not given.kernels:  # else its tasks have emitted it
            frame, partitions = frame.repartition(hinted), hinted
        flow = Flow(frame, types, partitions, given.kernels)
        if _is_there(node):
            return flow
        return self.kept(node, flow) if self.group.is_shared(node) else flow

    def _count(self, node: Node) -> int:
        """How many partitions an exchange makes: as hinted, else one for a small batch."""
        return self.group.hint(node) or (1 if self._small else self.group.partitions)

    @singledispatchmethod
    def _flow(self, node: Node) -> Flow:
        raise NotImplementedError(node)  # check_steps has seen to it

    @_flow.register(StateQueryNode | NewValuesNode)
    def _(self, node: StateQueryNode | NewValuesNode) -> Flow:
        return self._special(node)

    @_flow.register(HintNode | NameNode)
    def _(self, node: HintNode | NameNode) -> Flow:
        return self.flow(node.parent)

    @_flow.register
    def _(self, node: ProjectNode) -> Flow:
        return self.flow(node.parent)

    @_flow.register(EachNode | FilterNode | MapNode | FlatMapNode | PeekNode)
    def _(self, node: TupleNode) -> Flow:
        operation = node.facts.operation
        if isinstance(node, FlatMapNode) and isinstance(operation, Vectorised):
            return _then_on(self.flow(node.parent), node, arrow_kernel(node, operation))
        kernel = tuple_kernel(node, operation, self.group.needed[node])
        return _then_on(self.flow(node.parent), node, kernel)

    @_flow.register
    def _(self, node: NativeNode) -> Flow:
        flow = self.settled(node.parent)
        kept = [name for name in self.group.needed[node] if name not in node.outputs]
        types = {name: flow.types[name] for name in kept}
        types |= dict.fromkeys(node.outputs.names)
        return replace(flow, frame=native_step(flow.frame, node, kept), types=types)

    @_flow.register
    def _(self, node: MergeNode) -> Flow:
        names = self.group.needed[node]
        theirs = [merged_names(node, parent, names) for parent in node.merged]
        flows = [
            self._with_origin(parent, own) for parent, own in zip(node.merged, theirs, strict=True)
        ]
        frames = [
            flow.frame.withColumns({name: to(F.col(quoted(name))) for name, to in own.items()})
            if own
            else flow.frame
            for flow, own in zip(flows, conversions(flows, theirs), strict=True)
        ]
        first = frames[0].toDF(*names) if names else frames[0]
        frame = reduce(DataFrame.union, frames[1:], first)
        types = dict.fromkeys(names)
        hinted = self.group.hint(node)
        if hinted is not None:
            return Flow(frame.repartition(hinted), types, hinted)
        partitions = sum(flow.partitions for flow in flows)
        # Coalesced, all partitions of a stream would run in task 0, each as partition 0.
        if self._small and partitions == len(flows):
            return Flow(frame.coalesce(1), types, 1)
        return Flow(frame, types, partitions)

    def _with_origin(self, node: Node, names: Sequence[str]) -> Flow:
        """The output of a step as a DataFrame of these columns, with `ORIGIN` where it has none."""
        if ORIGIN not in names or ORIGIN in self.group.needed[node]:
            return self.settled(node, names)
        flow = self.settled(node, [name for name in names if name != ORIGIN])
        frame = selected(flow.frame.withColumn(ORIGIN, F.lit(MADE)), names)
        return replace(flow, frame=frame, types={**flow.types, ORIGIN: "string"})

    @_flow.register
    def _(self, node: JoinNode) -> Flow:
        parents, needed = node.joined, self.group.needed[node]
        flows = [
            self.twice(parent) if parents.count(parent) > 1 else self.settled(parent)
            for parent in parents
        ]
        kinds = {
            name: flows[of[0][0]].types[of[0][1]] if len(of) == 1 else None
            for name, of in node.columns.items()
            if name in needed
        }
        converted = conversions(flows, [key.names for key in node.keys])
        frame = native_join([flow.frame for flow in flows], converted, node, needed)
        hinted = self.group.hint(node)
        if all(flow.partitions == 1 for flow in flows):
            frame, partitions = frame.coalesce(1), 1  # which it is, where Spark knows that it can
        else:
            partitions = partitions_of(frame)
        if not partitions:  # Spark doesn't say, as of full joins that compare each with each
            partitions = max(flow.partitions for flow in flows)
            frame = frame.repartition(partitions)
        if hinted is not None and hinted != partitions:
            frame, partitions = frame.repartition(hinted), hinted
        return Flow(frame, kinds, partitions)

    @_flow.register
    def _(self, node: PartitionNode) -> Flow:
        count = self._count(node)
        if self.group.is_routed_later(node):
            return self.flow(node.parent)
        if node.grouping is not None:
            return self._grouped(node, node.grouping, count)
        flow = self.settled(node.parent)
        if node.how in ("global", "batchGlobal"):
            return self.gathered(flow)
        if node.how == "localOrShuffle" and flow.partitions == count:
            return flow
        if count == 1 and flow.partitions == 1:
            return flow
        if node.how == "broadcast":
            return _copied(flow, count)
        if node.by is not None and count > 1:
            routed = self.routed(flow, node.by.names, count)
            return replace(flow, frame=selected(routed.frame, tuple(flow.types)), partitions=count)
        return replace(flow, frame=flow.frame.repartition(count), partitions=count)

    def _grouped(self, node: PartitionNode, grouping: CustomStreamGrouping, count: int) -> Flow:
        """The flow with each tuple in the partitions that a grouping of the user's chooses."""
        needed = self.group.needed[node]
        kernel = grouping_kernel(node, grouping, needed, count)
        flow = _then_on(self.flow(node.parent), node, kernel)
        flow = replace(flow, types={**flow.types, PARTITION: "int"})
        flow = flow.settled((*needed, PARTITION), self.context, self.schemas)
        frame = selected(flow.frame.repartitionById(count, PARTITION), needed)
        return Flow(frame, {name: flow.types[name] for name in needed}, count)

    @_flow.register
    def _(self, node: PartitionAggregateNode) -> Flow:
        return _then_on(self.flow(node.parent), node, aggregate_kernel(node, node.aggregator))

    @_flow.register
    def _(self, node: AggregateNode) -> Flow:
        if is_native(node.aggregator):
            return self._native_aggregate(node)
        if combines_in_python(node):
            partial = self.partial(node)
            names = self._aggregate_names(node)
            flow = self._brought(partial.settled(names, self.context, self.schemas), node)
            return _then_on(flow, node, final_kernel(node, node.aggregator))
        names = self.group.needed[node.parent]
        flow = self._brought(self.settled(node.parent, names), node)
        return _then_on(flow, node, aggregate_kernel(node, node.aggregator))

    def partial(self, node: AggregateNode) -> Flow:
        """The aggregates of each partition that has tuples, for a combiner of the user's."""
        kernel = aggregate_kernel(node, node.aggregator, zero=False)
        return _then_on(self.flow(node.parent), node, kernel)

    def gathered(self, flow: Flow) -> Flow:
        """The flow in one partition."""
        if flow.partitions == 1:
            return flow
        return replace(flow, frame=flow.frame.repartition(1), partitions=1)

    def routed(
        self, flow: Flow, names: tuple[str, ...], count: int, shards: int | None = None
    ) -> Flow:
        """The flow with each key in its own partition, and that partition in a column."""
        types = flow.typed(tuple(flow.types))
        frame = by_key(flow.frame, names, types, count, self.schemas, self.context.seal, shards)
        return Flow(frame, {**types, PARTITION: "int"}, count)

    def _brought(self, flow: Flow, node: AggregateNode) -> Flow:
        """The flow with each group in one partition."""
        count = self._count(node)
        if not node.group or count == 1:
            return self.gathered(flow)
        columns = []
        for name, kind in flow.typed(node.group.names).items():
            column = F.col(quoted(name))
            # -0.0 and 0.0 are one key, but have two hashes.
            columns.append(column + F.lit(0.0) if kind in ("double", "float") else column)
        return replace(flow, frame=flow.frame.repartition(count, *columns), partitions=count)

    def _native_aggregate(self, node: AggregateNode) -> Flow:
        flow = self.settled(node.parent)
        frame = native_aggregate(flow.frame, node, self.context)
        partitions = 1 if flow.partitions == 1 or not node.group else self.group.partitions
        count = self._count(node)
        if count < partitions:
            frame, partitions = frame.coalesce(count), count
        flow = Flow(frame, dict.fromkeys(self._aggregate_names(node)), partitions)
        # Catalyst leaves groups in the one partition that they come from.
        wide = count > partitions and self.group.hint(node) and not self.group.only_updates(node)
        return self._brought(flow, node) if wide else flow

    def _aggregate_names(self, node: AggregateNode) -> tuple[str, ...]:
        return (*(node.group or ()), *node.outputs)


def _is_there(node: Node) -> bool:
    """Whether a step's tuples are kept somewhere, so that reading them twice makes nothing twice:
    those of spouts, and of requests. What a static stream is made of is its owner's to cache."""
    return isinstance(node, DRPCNode | StaticStreamNode) or (
        isinstance(node, SourceNode) and node.clock == "spout"
    )


def _then_on(flow: Flow, node: Node, kernel: Kernel) -> Flow:
    """The flow with the kernel of a step that runs an operation."""
    operation = node.facts.operation
    assert operation is not None
    return flow.then(kernel, node, deterministic=operation.deterministic)


def _copied(flow: Flow, count: int) -> Flow:
    """Every row once in each partition."""
    copies = F.explode(F.sequence(F.lit(0), F.lit(count - 1))).alias(PARTITION)
    names = tuple(flow.types)
    frame = flow.frame.select(*map(quoted, names), copies).repartitionById(count, PARTITION)
    return replace(flow, frame=selected(frame, names), partitions=count)
