"""Makes a job of the steps of a plan: one rule for each kind of step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from typing import Any

from trident.errors import FieldError, PlanError
from trident.job.job import (
    Broadcast,
    ByKey,
    Chosen,
    DeadLetters,
    Exchange,
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
from trident.job.native import is_native
from trident.job.passes import (
    ONE_PARTITION,
    field_type,
    in_order,
    is_repeatable,
    is_unkeyed_update,
    joins_row,
    merged_names,
    needed_fields,
    partitions_asked,
    unlabelled,
)
from trident.kernels.aggregate_kernels import (
    AggregateKernel,
    AggregatorKernel,
    CombinerKernel,
    ReducerKernel,
)
from trident.kernels.grouping_kernel import GroupingKernel
from trident.kernels.join_kernel import JoinKernel
from trident.kernels.kernel import Kernel, TupleKernel
from trident.kernels.on_error import SparingKernel
from trident.kernels.query_kernel import QueryKernel
from trident.kernels.query_row import QueryRow
from trident.kernels.task import step_name
from trident.kernels.tuple_kernels import (
    EachKernel,
    FilterKernel,
    FlatMapKernel,
    MapKernel,
    PeekKernel,
)
from trident.kernels.type_check import TypeCheckKernel, type_check
from trident.kernels.update_kernel import UpdateKernel
from trident.operations.chained import ChainedAggregator
from trident.operations.interfaces import CombinerAggregator, ReducerAggregator
from trident.operations.origins import ORIGIN, origin_of
from trident.operations.vectorised import Vectorised
from trident.plan.nodes import (
    AggregateNode,
    AggregatingNode,
    DeadLettersNode,
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
    OnError,
    OperationNode,
    PartitionAggregateNode,
    PartitionNode,
    PeekNode,
    ProjectNode,
    SourceNode,
    SparingNode,
    StateDeclaration,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
    StaticStreamNode,
)
from trident.plan.origins import takes_origins
from trident.plan.plan import BatchGroup, Part
from trident.states.maps.factory import MapStateFactory
from trident.states.values import StateType
from trident.tuples.fields import Fields
from trident.windows.window_updater import WindowUpdater


@dataclass(frozen=True)
class Local:
    """A job of this process: each step has one partition unless a hint says more."""


@dataclass(frozen=True)
class Spark:
    """A job of Spark's."""

    partitions: int
    """How many partitions an exchange makes by default."""
    small: bool = False
    """Whether one partition is enough, which saves every exchange."""
    few: bool = False
    """Whether Catalyst's aggregates are few. Then the driver updates maps with them, which needs no
    worker."""
    requests: bool = False
    """Whether it answers a request. A request reads only committed batches, so the control records
    have to be read first: the driver asks the states."""


Target = Local | Spark
"""What a job is made for."""


def compile_job(part: Part, target: Target) -> Job:
    """Make the job of a batch group or a query."""
    job, refused = draft_job(part, target)
    if refused:
        raise refused[0]
    return job


def draft_job(part: Part, target: Target) -> tuple[Job, Sequence[PlanError]]:
    """The same for explanations: the job, and each reason why its target can't run it."""
    compiler = _Compiler(part, target)
    return compiler.job(), compiler.refused


_KERNELS: Mapping[type[Node], type[TupleKernel]] = {
    EachNode: EachKernel,
    FilterNode: FilterKernel,
    MapNode: MapKernel,
    FlatMapNode: FlatMapKernel,
    PeekNode: PeekKernel,
}


@dataclass(eq=False)
class _Draft:
    """A stage that steps may still join."""

    inputs: tuple[_Draft, ...]
    exchange: Exchange
    last: Node
    partitions: int | None
    hint: int | None
    steps: list[Step] = field(default_factory=list)
    made: dict[str, Node] = field(default_factory=dict)
    """The fields that its kernels make in Python, each with its step."""
    row: list[StateQueryNode] = field(default_factory=list)
    """The look-ups of the last step, if it is one."""

    @property
    def is_idle(self) -> bool:
        return not self.steps and isinstance(self.exchange, Forward)


class _Compiler:
    """Makes one job; the rules are in the order of `trident/plan/nodes.py`."""

    def __init__(self, part: Part, target: Target) -> None:
        nodes, result = part.steps, part.result
        self._part = part
        self._nodes = nodes
        self._spark = target if isinstance(target, Spark) else None
        self._result = result
        letters = [node for node in nodes if isinstance(node, DeadLettersNode)]
        self._dying = {each for node in letters for each in node.parents}
        self._needed = needed_fields(nodes, [result] if result else (), self._dying)
        self._hints, self.refused = partitions_asked(nodes)
        self._consumers: dict[Node, list[Node]] = {node: [] for node in nodes}
        for node in nodes:
            for parent in dict.fromkeys(node.parents):
                if node not in letters:  # dead letters are not part of a step's output
                    self._consumers[parent].append(node)
        self._drafts: list[_Draft] = []
        self._of: dict[Node, _Draft] = {}
        self._updated = {node for node in nodes if isinstance(node, StateUpdateNode)}

    def job(self) -> Job:
        for node in in_order(self._nodes):
            self._of[node] = self._rule(node)
            self._of[node].last = node
        drafts = self._drafts
        while idle := [each for each in drafts if each.is_idle and not self._readers(each)]:
            drafts = self._drafts = [each for each in drafts if each not in idle]
        if self._spark:
            for draft in drafts:
                if self._leaves_python(draft):
                    self._check_leaving(draft, self._needed[draft.last])
        places = {id(draft): place for place, draft in enumerate(drafts)}
        held: list[list[int]] = [[] for _ in drafts]
        for node, draft in self._of.items():
            while id(draft) not in places:  # a label without a following step
                [draft] = draft.inputs
            held[places[id(draft)]].append(node.id)
        stages = [
            Stage(
                id=place,
                ids=tuple(held[place]),
                inputs=tuple([places[id(each)] for each in draft.inputs]),
                exchange=draft.exchange,
                steps=tuple(draft.steps),
                columns=self._needed[draft.last],
                partitions=draft.partitions,
                hint=draft.hint,
                readers=self._readers(draft),
                repeatable=is_repeatable(draft.last),
            )
            for place, draft in enumerate(drafts)
        ]
        result = places[id(self._of[self._result])] if self._result else None
        return Job(tuple(stages), result)

    def _leaves_python(self, draft: _Draft) -> bool:
        """Whether tuples leave Python at the end of a stage; otherwise the next continues there."""
        readers = [each.exchange for each in self._drafts if draft in each.inputs]
        if self._readers(draft) != 1 or not readers:
            return True
        [exchange] = readers
        if isinstance(exchange, ByKey | Gather):
            return exchange.combine is None
        return not isinstance(exchange, Forward)

    def _readers(self, draft: _Draft) -> int:
        readers = sum(draft in each.inputs for each in self._drafts)
        return readers + (self._result is not None and draft is self._of.get(self._result))

    # How steps come together.

    def _begin(
        self, node: Node, exchange: Exchange, parents: Iterable[Node], count: int | None
    ) -> _Draft:
        """Begin a stage with a step."""
        inputs = tuple([self._of[parent] for parent in parents])
        draft = _Draft(inputs, exchange, node, count, self._hints[node])
        self._drafts.append(draft)
        return draft

    def _ends_with(self, draft: _Draft, parent: Node) -> bool:
        """Whether a stage may go on behind a step: nothing else follows the step."""
        return (
            draft.last is parent
            and len(self._consumers[parent]) == 1
            and parent is not self._result
            and not (self._spark and isinstance(parent, StateUpdateNode))
        )

    def _joins(self, node: Node, parent: Node) -> bool:
        """Whether a step that moves no tuples runs in the stage of the step before."""
        before = self._of[parent]
        # The step before a query may run earlier than the query, which waits for its turn.
        return self._ends_with(before, parent) and self._drafts[-1] is before

    def _join(self, node: Node, parent: Node) -> _Draft:
        """Return the stage of the step before, or a new one behind it that moves no tuples."""
        before = self._of[parent]
        if self._joins(node, parent):
            return before
        hint = self._hints[node] if isinstance(parent, StateUpdateNode) else None
        least = hint if self._spark else None
        known = before.partitions
        count = known if known is None or least is None else max(known, least)
        draft = self._begin(node, Forward(least), [parent], count)
        draft.made = dict(before.made)
        return draft

    def _count(self, node: Node) -> int:
        """How many partitions an exchange makes."""
        default = self._spark.partitions if self._spark and not self._spark.small else 1
        return self._hints[node] or default

    def _moves(self, node: Node, parent: Node) -> bool:
        """Whether an exchange may move any tuple; in a single partition none does."""
        return self._of[parent].partitions != 1 or self._count(node) != 1

    def _add(self, draft: _Draft, node: Node, kernel: Kernel) -> _Draft:
        """Add the kernel of a step to a stage, and the check of its output."""
        operation, makes = node.operation, node.makes
        check = type_check(kernel.step, operation, makes)
        if isinstance(node, SparingNode) and self._policy(node) != "fail":
            group = self._part.id if isinstance(self._part, BatchGroup) else ""
            keeper = group if node in self._dying else None
            fields = node.parents[0].fields.names
            kernel = SparingKernel(kernel.step, kernel.operation, kernel, check, keeper, fields)
            check = None
        step = Kernels(
            ids=(node.id,),
            name=kernel.step,
            makes=makes,
            columns=self._needed[node],
            deterministic=operation is None or operation.deterministic,
            kernels=(kernel,) if check is None else (kernel, check),
        )
        return self._append(draft, node, step)

    def _policy(self, node: SparingNode) -> OnError:
        """What happens to the tuples that a step fails with."""
        return node.policy(self._part.on_error if isinstance(self._part, BatchGroup) else "fail")

    def _append(self, draft: _Draft, node: Node, step: Step) -> _Draft:
        draft.row = []
        draft.steps.append(step)
        draft.made |= dict.fromkeys(step.makes, node)
        return draft

    def _check_leaving(self, draft: _Draft, columns: Iterable[str]) -> None:
        """Check that every column that leaves Python for Spark has a type."""
        for name in columns:
            if name in draft.made:
                self._check_type(draft.made[name], name)

    def _check_type(self, node: Node, name: str) -> None:
        """Check that the plan knows the Spark type of a field."""
        if self._spark:
            try:
                field_type(node, name)
            except FieldError as error:
                self.refused.append(error)

    def _check_on_spark(self, node: Node) -> None:
        """Check that the job is Spark's, as nothing else can run the step."""
        if not self._spark:
            what = f"{node.origin.call} at {node.origin}: only Spark can run the step"
            advice = "Start it with a session, start(spark), or write the step in Python."
            self.refused.append(PlanError(what, node.call_text, (), advice))

    def _leave(self, draft: _Draft, node: Node) -> None:
        """Let the output of a step leave Python in the middle of a stage."""
        if self._spark:
            self._check_leaving(draft, self._needed[node])
            draft.made = {}

    def _carried(self, node: Node) -> tuple[str, ...]:
        """The fields that a later step needs, and that the step hands on."""
        makes = node.makes
        return tuple([name for name in self._needed[node] if name not in makes])

    # Where tuples begin.

    @singledispatchmethod
    def _rule(self, node: Node) -> _Draft:
        what = f"{node.origin.call} at {node.origin}: engines can't run a"
        advice = "Tell it how, in trident/job/compile.py."
        raise PlanError(what, type(node).__name__, (), advice)

    def _begin_stream(
        self,
        node: Node,
        stream: str,
        check: TypeCheckKernel | None = None,
        origin: str | None = None,
        kept: bool = True,
    ) -> _Draft:
        """Begin a stage with the tuples that the engine is given for a stream."""
        columns = self._needed[node]
        source = Source(step_name(node), stream, node.fields, columns, check, origin, kept)
        single = not self._spark or self._spark.small
        return self._begin(node, source, (), self._hints[node] or (1 if single else None))

    @_rule.register
    def _(self, node: SourceNode) -> _Draft:
        stream, origin = node.stream_id, origin_of(node.stream_id)
        if node.clock == "dataframe":
            self._check_on_spark(node)
            return self._begin_stream(node, stream, None, origin, kept=False)
        for column in self._needed[node]:
            if column in node.fields:
                self._check_type(node, column)
        check = type_check(step_name(node), None, node.makes)
        return self._begin_stream(node, stream, check, origin)

    @_rule.register
    def _(self, node: DRPCNode) -> _Draft:
        return self._begin_stream(node, node.function)  # its arguments are a string already

    @_rule.register
    def _(self, node: DeadLettersNode) -> _Draft:
        return self._begin(node, DeadLetters(), (), 1)

    @_rule.register
    def _(self, node: StaticStreamNode) -> _Draft:
        self._check_on_spark(node)
        return self._begin_stream(node, node.stream_id)  # its owner may cache its tuples

    # Steps that work on each tuple by itself.

    @_rule.register(EachNode | FilterNode | MapNode | FlatMapNode | PeekNode)
    def _(self, node: OperationNode) -> _Draft:
        draft, inputs = self._join(node, node.parent), node.parent.fields.select(node.inputs)
        operation: Any = node.operation
        if isinstance(operation, Vectorised):
            return self._vectorised(draft, node, operation)
        outputs = node.makes.names
        kernel = _KERNELS[type(node)](
            step_name(node), operation, inputs, self._carried(node), outputs
        )
        return self._add(draft, node, kernel)

    def _vectorised(self, draft: _Draft, node: OperationNode, operation: Vectorised) -> _Draft:
        try:
            from trident.kernels.arrow_kernel import ArrowKernel
        except ImportError as error:
            what = f"{node.origin.call} at {node.origin}: pyarrow is needed for ({error}):"
            advice = 'Install it: pip install "trident-spark[spark]".'
            self.refused.append(PlanError(what, node.call_text, (), advice))
            return draft
        kernel = ArrowKernel(step_name(node), operation, node.parent.fields, node.fields)
        return self._add(draft, node, kernel)

    @_rule.register
    def _(self, node: NativeNode) -> _Draft:
        self._check_on_spark(node)
        draft = self._join(node, node.parent)
        self._leave(draft, node.parent)
        step = NativeStep(
            ids=(node.id,),
            name=step_name(node),
            makes=node.makes,
            columns=self._needed[node],
            deterministic=node.expression.deterministic,
            expression=node.expression,
        )
        self._append(draft, node, step).made = {}
        return draft

    # Steps that only say something of others.

    @_rule.register(ProjectNode | HintNode | NameNode | NewValuesNode)
    def _(self, node: ProjectNode | HintNode | NameNode | NewValuesNode) -> _Draft:
        before = self._of[node.parent]  # columns have names, and nothing moves
        return before if self._ends_with(before, node.parent) else self._join(node, node.parent)

    # Steps that move tuples.

    @_rule.register
    def _(self, node: PartitionNode) -> _Draft:
        parent, name, count = node.parent, step_name(node), self._count(node)
        if node.grouping is not None:
            kernel = GroupingKernel(
                name, node.grouping, parent.fields, self._carried(node), count=count
            )
            return self._begin(node, Chosen(kernel), [parent], count)
        if not self._moves(node, parent) or self._is_routed_later(node):
            return self._join(node, parent)
        exchange: Exchange
        if node.how in ONE_PARTITION or (node.by is not None and count == 1):
            exchange = Gather(name)
        elif node.by is not None:
            exchange = ByKey(name, node.by.names)
        elif node.how == "broadcast":
            exchange = Broadcast() if count > 1 else Gather(name)
        else:
            exchange = Spread(settled=node.how == "localOrShuffle")
        return self._begin(node, exchange, [parent], count)

    def _is_routed_later(self, node: PartitionNode) -> bool:
        """Whether only a state update on Spark follows, which moves its keys itself."""
        if not self._spark or node.how not in ("partitionBy", *ONE_PARTITION):
            return False
        return self._update_after(node) is not None

    def _update_after(self, node: Node) -> StateUpdateNode | None:
        """The state update that takes all of a step's output, if there is one."""
        after = self._consumers[node]
        while len(after) == 1 and isinstance(after[0], HintNode | NameNode):
            after = self._consumers[after[0]]
        return after[0] if len(after) == 1 and isinstance(after[0], StateUpdateNode) else None

    @_rule.register
    def _(self, node: PartitionAggregateNode) -> _Draft:
        return self._add(self._join(node, node.parent), node, aggregate_kernel(node))

    @_rule.register
    def _(self, node: AggregateNode) -> _Draft:
        native = self._spark is not None and is_native(node.aggregator)
        if not self._moves(node, node.parent):
            draft = self._join(node, node.parent)
            if native:
                return self._native_aggregate(draft, node)
            return self._add(draft, node, aggregate_kernel(node))
        if native:
            draft = self._begin(node, self._by_group(node), [node.parent], self._count(node))
            return self._native_aggregate(draft, node)
        partial, final = combining_kernels(node)
        exchange = self._by_group(node, partial)
        if self._spark and partial is not None:
            self._check_leaving(self._of[node.parent], node.group or ())
            for name in node.outputs:
                self._check_type(node, name)
        draft = self._begin(node, exchange, [node.parent], self._count(node))
        return self._add(draft, node, final)

    def _by_group(
        self, node: AggregateNode, combine: AggregateKernel | None = None
    ) -> ByKey | Gather:
        name = step_name(node)
        if not node.group or self._count(node) == 1:
            return Gather(name, combine)
        return ByKey(name, node.group.names, combine, stable=False)

    def _native_aggregate(self, draft: _Draft, node: AggregateNode) -> _Draft:
        assert isinstance(node.aggregator, CombinerAggregator)
        self._leave(draft, node.parent)
        step = NativeAggregate(
            ids=(node.id,),
            name=step_name(node),
            makes=node.makes,
            columns=self._needed[node],
            group=(node.group or Fields()).names,
            inputs=node.inputs.names,
            aggregator=node.aggregator,
            stays=not self._hints[node] or self._update_after(node) is not None,
        )
        self._append(draft, node, step).made = {}
        return draft

    # States.

    @_rule.register
    def _(self, node: StateUpdateNode) -> _Draft:
        kept = self._kept(node)
        draft = self._updating_on_spark(node, kept) if self._spark else self._updating(node)
        inputs, name = node.parent.fields.select(node.inputs), step_name(node)
        check = type_check(name, node.updater, node.makes)
        if self._spark:
            for output in kept or ():
                self._check_type(node, output)
        reads = node.parent.fields.select(node.reads)
        if takes_origins(node):
            reads = reads + Fields.typed([(ORIGIN, "string")])
        update = Update(
            ids=(node.id,),
            name=name,
            makes=node.makes,
            columns=Fields() if kept is None else self._needed[node],
            kernel=UpdateKernel(
                name, node.updater, inputs, node.fields.names, check, kept, node.expiry
            ),
            state=node.state,
            reads=reads,
            on_driver=self._updates_here(node, kept),
            ordered=isinstance(node.updater, WindowUpdater),
            keyed=not is_unkeyed_update(node),
        )
        self._append(draft, node, update).made = {}
        return draft

    def _kept(self, node: StateUpdateNode) -> tuple[str, ...] | None:
        """The new values that a later step reads; None if no step takes them."""
        taken = any(isinstance(each, NewValuesNode) for each in self._consumers[node])
        return self._needed[node].names if taken or node is self._result else None

    def _updating(self, node: StateUpdateNode) -> _Draft:
        if not is_unkeyed_update(node) or not self._moves(node, node.parent):
            return self._join(node, node.parent)
        return self._begin(node, Gather(step_name(node)), [node.parent], 1)

    def _updating_on_spark(self, node: StateUpdateNode, kept: object) -> _Draft:
        """The stage of an update; only a combined aggregate before it may share this stage."""
        name = step_name(node)
        combined = self._combined_before(node)
        combine = None
        if combined is not None:
            assert isinstance(combined.exchange, ByKey | Gather)
            combine, name = combined.exchange.combine, combined.exchange.name
        count, key = self._updating_count(node), self._key(node)
        exchange: Exchange
        if self._updates_here(node, kept):
            count, exchange = 1, Gather(name, combine, on_driver=True)
        elif node.updater.anywhere:
            return self._begin(node, Forward(), [node.parent], self._hints[node])
        elif count == 1:
            exchange = Gather(name, combine)
        else:
            exchange = ByKey(name, key, combine, grouped=self._is_grouped(node))
        if combined is not None:
            combined.exchange, combined.partitions = exchange, count
            return combined
        return self._begin(node, exchange, [node.parent], count)

    def _combined_before(self, node: StateUpdateNode) -> _Draft | None:
        """The stage that combines the aggregates of partitions, if only this update takes it."""
        aggregate = unlabelled(node.parent)
        draft = self._of[node.parent]
        if (
            isinstance(aggregate, AggregateNode)
            and isinstance(draft.exchange, ByKey | Gather)
            and draft.exchange.combine is not None
            and len(draft.steps) == 1
            and self._of[aggregate] is draft
            and self._joins(node, node.parent)
        ):
            return draft
        return None

    def _updating_count(self, node: StateUpdateNode) -> int:
        """How many partitions update a state: the same in every batch, except of map states."""
        assert self._spark is not None
        by_key = isinstance(node.state.factory, MapStateFactory)
        if not self._key(node) or (
            self._spark.small and by_key and not node.state.required_partitions
        ):
            return 1
        return self._hints[node] or self._spark.partitions

    def _key(self, node: StateUpdateNode) -> tuple[str, ...]:
        """The fields whose values decide to which partition of the state a tuple belongs."""
        before = unlabelled(node.parent)
        if isinstance(before, PartitionNode):
            return before.by.names if before.by else ()
        if isinstance(before, AggregateNode):
            return before.group.names if before.group else ()
        return node.group.names if node.group else ()

    def _is_grouped(self, node: StateUpdateNode) -> bool:
        """Whether each key is in one partition already, after Catalyst's aggregate."""
        factory = node.state.factory
        return self._takes_aggregates(node) and factory.shards is None

    def _takes_aggregates(self, node: StateUpdateNode) -> bool:
        """Whether it updates a map with what Catalyst aggregates."""
        before = unlabelled(node.parent)
        return (
            isinstance(node.state.factory, MapStateFactory)
            and isinstance(before, AggregateNode)
            and is_native(before.aggregator)
        )

    def _updates_here(self, node: StateUpdateNode, kept: object) -> bool:
        """Whether a state is updated in the driver's process."""
        if self._is_here(node.state):
            return True
        asked = node.state.required_partitions or self._hints[node]
        few = self._spark is not None and self._spark.few
        return few and kept is None and not asked and self._takes_aggregates(node)

    @_rule.register
    def _(self, node: StateQueryNode) -> _Draft:
        draft = self._join(node, node.parent)
        on_driver = self._asks_here(node)
        if draft.row and self._joins_row(draft.row, node):
            draft.steps.pop()
            row = [*draft.row, node]
        else:
            row = [node]
            if on_driver:
                self._leave(draft, node.parent)
        steady = [
            each.asks in self._updated and each.asks.state.factory.kind is StateType.OPAQUE
            for each in row
        ]
        step = LookUp(
            ids=tuple([each.id for each in row]),
            name=step_name(node),
            makes=Fields.typed([each for n in row for each in n.makes.types.items()]),
            columns=self._needed[node],
            # Spark would run the query when its rows are asked for: a state may change until then.
            deterministic=all(steady),
            row=self._query_row(row, on_driver),
            states=tuple([each.asks.state for each in row]),
            updated=tuple([each.asks in self._updated for each in row]),
            on_driver=on_driver,
        )
        self._append(draft, node, step).row = row
        if step.is_urgent or on_driver:
            self._leave(draft, node)
        return draft

    def _asks_here(self, node: StateQueryNode) -> bool:
        """Whether a state is asked in the driver's process, for all tuples of a batch."""
        if not self._spark:
            return False
        return self._spark.requests or self._is_here(node.asks.state)

    def _is_here(self, state: StateDeclaration) -> bool:
        return isinstance(self._part, BatchGroup) and self._part.is_here(state)

    def _joins_row(self, row: Sequence[StateQueryNode], node: StateQueryNode) -> bool:
        here = self._asks_here(node)
        # The driver asks for distinct inputs, and combinations of several fields are more.
        alike = not here or set(row[0].inputs) == set(node.inputs)
        return alike and self._asks_here(row[0]) == here and joins_row(row, node)

    def _query_row(self, row: Sequence[StateQueryNode], on_driver: bool) -> QueryRow:
        needed = {node: self._needed[node].names for node in row}
        if on_driver:  # the answers are joined to the tuples by the inputs
            names = dict.fromkeys(name for each in row for name in each.inputs)
            names |= dict.fromkeys(name for each in row for name in each.outputs)
            needed = dict.fromkeys(row, tuple(names))
        queries, checks = [], []
        for node in row:
            name, given = step_name(node), node.parent.fields
            carried = [field for field in needed[node] if field in given or field == ORIGIN]
            inputs, outputs = given.select(node.inputs), node.outputs.names
            queries.append(QueryKernel(name, node.function, inputs, tuple(carried), outputs))
            checks.append(type_check(name, node.function, node.makes))
        return QueryRow(tuple(queries), tuple(checks))

    @_rule.register
    def _(self, node: StaticStateNode) -> _Draft:
        raise NotImplementedError(node)  # it has no tuples, and no part has it as a step

    # Streams that meet.

    @_rule.register
    def _(self, node: MergeNode) -> _Draft:
        names = self._needed[node]
        columns = tuple([tuple(merged_names(node, each, names)) for each in node.parents])
        counts = [self._of[parent].partitions for parent in node.parents]
        count = self._hints[node]
        if count is None and None not in counts:
            count = sum(each or 0 for each in counts) if set(counts) != {1} else 1
        draft = self._begin(node, Union(columns, names.names), node.parents, count)
        return self._converted(draft, node)

    @_rule.register
    def _(self, node: JoinNode) -> _Draft:
        keys = tuple([key.names for key in node.keys])
        columns = {name: node.columns[name] for name in self._needed[node]}
        kernel = JoinKernel(step_name(node), keys, node.required, columns)
        together = not self._spark or all(self._of[each].partitions == 1 for each in node.parents)
        count = self._hints[node] or (1 if together else None)
        draft = self._begin(node, Join(kernel), node.parents, count)
        return self._converted(draft, node)

    def _converted(self, draft: _Draft, node: Node) -> _Draft:
        """Convert values of several types to the type of the field in which they meet; on Spark,
        Catalyst does so."""
        check = type_check(step_name(node), None, node.makes, self._needed[node])
        if check is None or self._spark:
            return draft
        step = Kernels(
            ids=(node.id,),
            name=check.step,
            makes=node.makes,
            columns=self._needed[node],
            kernels=(check,),
        )
        return self._append(draft, node, step)


def aggregate_kernel(node: AggregatingNode) -> AggregateKernel:
    """The kernel that aggregates all tuples of a group."""
    group, inputs = node.group or Fields(), node.parent.fields.select(node.inputs)
    name, outputs = step_name(node), node.outputs.names
    aggregator: Any = node.aggregator
    if isinstance(aggregator, CombinerAggregator):
        return CombinerKernel(name, aggregator, group.names, inputs, outputs)
    kind = ReducerKernel if isinstance(aggregator, ReducerAggregator) else AggregatorKernel
    return kind(name, aggregator, group.names, inputs, outputs)


def combining_kernels(
    node: AggregatingNode,
) -> tuple[AggregateKernel | None, AggregateKernel]:
    """The kernels that aggregate a batch: one for each partition before tuples move, if it can be
    combined, and one behind."""
    group, outputs = (node.group or Fields()).names, node.outputs.names
    name, made, kernel = step_name(node), Fields(*outputs), aggregate_kernel(node)
    if isinstance(kernel, CombinerKernel):
        final = CombinerKernel(name, kernel.operation, group, made, outputs, partial=True)
        return replace(kernel, zero=False), final
    chain: Any = node.aggregator
    if isinstance(chain, ChainedAggregator) and chain.combines:
        return kernel, AggregatorKernel(name, chain.of_partials(made), group, made, outputs)
    return None, kernel
