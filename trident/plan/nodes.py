"""The nodes of a plan: one frozen dataclass for each kind of step.

A node is compared by identity, knows its parents, and derives its output fields from them, with
types where they are known. Constructors check what a node needs to be meaningful by itself, so
that the call that is wrong is the call that fails.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform, get_args

from trident.errors import FieldError, PlanError
from trident.operations.callables import CallableColumn, Native
from trident.operations.dead_letters import LETTER
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    Consumer,
    CustomStreamGrouping,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    Operation,
    QueryFunction,
    ReducerAggregator,
    StateUpdater,
    operation_name,
)
from trident.operations.row_writer import RowWriter
from trident.operations.state_updaters import CombinerAggStateUpdater, ReducerAggStateUpdater
from trident.operations.vectorised import Vectorised
from trident.plan.call_site import CallSite
from trident.plan.step_checks import (
    check_aggregate_shape,
    check_join_keys,
    check_keys,
    check_names,
    check_new_fields,
    check_on_error,
    check_parallelism,
    check_selection,
    check_types_agree,
    check_width,
)
from trident.tuples.fields import Fields
from trident.tuples.value_types import common_type
from trident.windows.expiry import Expiry
from trident.windows.window_updater import WindowUpdater

if TYPE_CHECKING:
    from trident.states.state import StateFactory

AnyAggregator = CombinerAggregator[Any] | ReducerAggregator[Any] | Aggregator[Any]
Kind = Literal["opaque", "transactional", "non-transactional"]
Clock = Literal["dataframe", "spout"]
"""What makes the batches of a stream: Structured Streaming, or our loop over spouts."""
OutputMode = Literal["append", "update", "complete"]
QueryEngine = Literal["local", "spark"]
"""What answers a query: the process that is asked, or Spark by a job for each request."""
OnError = Literal["fail", "skip", "dead-letter"]
"""What becomes of a tuple with which a step fails: the run stops, or goes on without it."""
How = Literal[
    "partitionBy", "shuffle", "localOrShuffle", "global", "batchGlobal", "broadcast", "partition"
]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a step says of itself; there is no default, so that none is forgotten.

    It `reads` fields of its parents whether it hands them on or not; it hands on all that it
    doesn't make. It `acts_on_nothing` where it gives tuples, or runs the user's operation, though
    it is handed none. It `hands_on` where each of its tuples is made of one, so that it can tell
    where that came from.
    """

    reads: Fields
    makes: Fields
    operation: Operation | Native | None
    acts_on_nothing: bool
    hands_on: bool


def _of_each_tuple(reads: Fields, makes: Fields, operation: Operation | Native | None) -> Facts:
    """The facts of a step that makes each of its tuples of one, and acts on nothing else."""
    return Facts(
        reads=reads, makes=makes, operation=operation, acts_on_nothing=False, hands_on=True
    )


PASSES_ON = _of_each_tuple(Fields(), Fields(), None)
"""The facts of a step that runs nothing and makes no values."""


@dataclass_transform(
    eq_default=False, frozen_default=True, kw_only_default=True, field_specifiers=(field,)
)
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Node(ABC):
    """One step; every class of them is a frozen dataclass. Ids are in the order of creation."""

    moves: ClassVar[bool] = False
    """Whether it is asked to bring tuples into other partitions, or together."""

    id: int
    origin: CallSite

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, kw_only=True, repr=False)(cls)

    def __post_init__(self) -> None:
        self.check()
        for position, parent in enumerate(self.parents):
            self._check_taken(parent, self.takes(position, self.fields))

    def check(self) -> None:
        """Raise `PlanError` where the step is meaningless."""

    @property
    @abstractmethod
    def parents(self) -> tuple[Node, ...]:
        """The steps whose output it takes."""

    @cached_property
    def roots(self) -> frozenset[Node]:
        """Where its tuples begin: the steps without parents that lead to it."""
        first, *others = self.parents or (None,)
        if first is None:
            return frozenset([self])
        return first.roots.union(*(other.roots for other in others)) if others else first.roots

    @property
    def of_query(self) -> bool:
        """Whether its tuples begin with a request, or are the rows of a static stream."""
        return any(isinstance(root, DRPCNode | StaticStreamNode) for root in self.roots)

    @property  # ABC doesn't see an abstract cached_property
    @abstractmethod
    def fields(self) -> Fields:
        """The output fields."""

    @property  # ABC doesn't see an abstract cached_property
    @abstractmethod
    def facts(self) -> Facts:
        """What the step reads, makes and runs; see `Facts`."""

    @property
    @abstractmethod
    def call_text(self) -> str:
        """The call that declared the step, in one line; plans and errors name the step by it."""

    @property
    def stream_text(self) -> str:
        """What there is to know of a stream that begins here; empty for all other steps."""
        return ""

    @property
    def updates(self) -> StateDeclaration | None:
        return None

    @property
    def asks(self) -> StateNode | None:
        return None

    @property
    def asks_updated(self) -> StateUpdateNode | None:
        """What updates the state that it looks up; None where this topology doesn't."""
        return self.asks if isinstance(self.asks, StateUpdateNode) else None

    def takes(self, position: int, wanted: Iterable[str]) -> Iterable[str]:
        """The fields of a parent that the step needs to deliver the `wanted` ones of its own."""
        facts = self.facts
        return (*facts.reads, *(name for name in wanted if name not in facts.makes))

    def _check_taken(self, parent: Node, names: Iterable[str]) -> None:
        for name in names:
            if name not in parent.fields:
                what = f"{self.origin.call}: a {type(self).__name__} takes an unknown field"
                advice = "Where the node makes it itself, name it in the `makes` of its facts."
                raise FieldError(what, name, parent.fields.names, advice)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.fields!r} at {self.origin}>"


class StepNode(Node):
    """A step with one parent; by itself it passes the fields on."""

    parent: Node

    @property
    def parents(self) -> tuple[Node, ...]:
        return (self.parent,)

    @cached_property
    def fields(self) -> Fields:
        return self.parent.fields


@dataclass(frozen=True)
class StateDeclaration:
    """A state as the plan knows it; the partitions are those that its `StateSpec` requires."""

    name: str
    factory: StateFactory
    required_partitions: int | None = None
    renamed_from: str | None = None

    @property
    def kept_name(self) -> str:
        """The name that the log and the store keep it under: its first one."""
        return self.renamed_from or self.name


class BeginningNode(Node):
    """Where a stream begins: nothing comes before, and all of its fields are made here."""

    @property
    def parents(self) -> tuple[Node, ...]:
        return ()

    @cached_property
    def facts(self) -> Facts:
        return Facts(
            reads=Fields(), makes=self.fields, operation=None, acts_on_nothing=False, hands_on=False
        )


class SourceNode(BeginningNode):
    """A stream's beginning: a DataFrame or a spout; rows tell their partition by
    `partition_fields`."""

    stream_id: str
    source: Any
    declared: Fields
    kind: Kind
    clock: Clock
    output_mode: OutputMode = "append"
    partition_fields: Fields = field(default_factory=Fields)
    history: Any = None
    """Of a DataFrame: a batch one, whose rows come before its own."""
    until: str = ""
    """Where the history ends and the stream begins, if that was said."""

    @cached_property
    def fields(self) -> Fields:
        return self.declared

    @property
    def call_text(self) -> str:
        more = "" if self.output_mode == "append" else f', outputMode="{self.output_mode}"'
        more += "" if self.history is None else f", history={type(self.history).__name__}"
        more += f", until={self.until}" if self.until else ""
        return f'newStream("{self.stream_id}", {type(self.source).__name__}{more})'

    @property
    def stream_text(self) -> str:
        return f"{self.kind} stream of {self.fields}"

    @property
    def kept_schema(self) -> str:
        """The schema as the log keeps it, with what else decides which rows there are."""
        kinds = self.fields.types.items()
        text = ", ".join(f"{name} {kind}" if kind else name for name, kind in kinds)
        text += "" if self.output_mode == "append" else f"; {self.output_mode}"
        return f"{text}; history until {self.until}" if self.until else text


class DRPCNode(BeginningNode):
    """The beginning of a query: one tuple ``args``, a string."""

    function: str
    engine: QueryEngine = "local"

    @cached_property
    def fields(self) -> Fields:
        return Fields(args=str)

    @property
    def call_text(self) -> str:
        engine = "" if self.engine == "local" else f', engine="{self.engine}"'
        return f'newDRPCStream("{self.function}"{engine})'


class StaticStreamNode(BeginningNode):
    """The rows of a batch DataFrame, for queries that Spark answers."""

    frame: Any
    declared: Fields

    @property
    def stream_id(self) -> str:
        """What tells it from other streams."""
        return f"static {self.id}"

    @cached_property
    def fields(self) -> Fields:
        return self.declared

    @property
    def call_text(self) -> str:
        return f"newStaticStream({type(self.frame).__name__})"

    @property
    def stream_text(self) -> str:
        return f"static stream of {self.fields}"


class SparingNode(StepNode):
    """A step that may go on without the tuples that its operation fails with.

    `on_error` is None where the start says it.
    """

    on_error: OnError | None = None

    def check(self) -> None:
        super().check()
        check_on_error(self.origin.call, self.on_error, get_args(OnError), self.of_query)

    def policy(self, default: OnError) -> OnError:
        """What becomes of its bad tuples; requests always fail with them."""
        return self.on_error or ("fail" if self.of_query else default)

    @property
    def _on_error_text(self) -> str:
        return f'on_error="{self.on_error}"' if self.on_error else ""


class AppendingNode(StepNode):
    """Appends fields; `inputs` are those that it reads, None where that is unknown."""

    inputs: Fields | None
    outputs: Fields

    def check(self) -> None:
        check_selection(self.origin.call, self.inputs or Fields(), self.parent.fields)
        check_new_fields(self.origin.call, self.outputs, self.parent.fields)


class EachNode(SparingNode, AppendingNode):
    """Appends what a function makes of the input fields."""

    inputs: Fields
    function: Function

    @cached_property
    def fields(self) -> Fields:
        inputs = self.parent.fields.select(self.inputs)
        return self.parent.fields + self.outputs.with_types(self.function.infer_types(inputs))

    @cached_property
    def facts(self) -> Facts:
        return _of_each_tuple(self.inputs, self.fields.select(self.outputs), self.function)

    @property
    def call_text(self) -> str:
        operation = operation_name(self.function)
        if isinstance(self.function, CallableColumn):
            return _call("withColumn", self.outputs, operation, self.inputs, self._on_error_text)
        return _call("each", self.inputs, operation, self.outputs, self._on_error_text)


class FilterNode(SparingNode):
    """Keeps some tuples."""

    inputs: Fields
    filter: Filter

    def check(self) -> None:
        super().check()
        check_selection(self.origin.call, self.inputs, self.parent.fields)

    @cached_property
    def facts(self) -> Facts:
        return _of_each_tuple(self.inputs, Fields(), self.filter)

    @property
    def call_text(self) -> str:
        operation = operation_name(self.filter)
        return _call(self.origin.call, self.inputs, operation, self._on_error_text)


class ReplacingNode(SparingNode):
    """Replaces each tuple by others; without ``outputs`` the names, types and number of fields
    stay."""

    function: MapFunction | FlatMapFunction | Vectorised
    outputs: Fields | None = None

    @cached_property
    def fields(self) -> Fields:
        before, inferred = self.parent.fields, self.function.infer_types(self.parent.fields)
        if self.outputs is not None:
            return self.outputs.with_types(inferred)
        return Fields(*before.names).with_types(inferred).with_types(before.types.values())

    @cached_property
    def facts(self) -> Facts:
        return Facts(
            reads=self.parent.fields,
            makes=self.fields,
            operation=self.function,
            acts_on_nothing=False,
            hands_on=not isinstance(self.function, Vectorised),
        )


class MapNode(ReplacingNode):
    """Replaces each tuple by one."""

    function: MapFunction

    @property
    def call_text(self) -> str:
        return _call("map", operation_name(self.function), self.outputs, self._on_error_text)


class FlatMapNode(ReplacingNode):
    """Replaces each tuple by any number, or a record batch by another."""

    function: FlatMapFunction | Vectorised

    @property
    def call_text(self) -> str:
        return _call("flatMap", operation_name(self.function), self.outputs, self._on_error_text)


class PeekNode(StepNode):
    """Shows each tuple, with all its fields, to a consumer."""

    consumer: Consumer

    @cached_property
    def facts(self) -> Facts:
        return _of_each_tuple(self.parent.fields, Fields(), self.consumer)

    @property
    def call_text(self) -> str:
        return _call("peek", operation_name(self.consumer))


class ProjectNode(StepNode):
    """Keeps the named fields only, in that order."""

    keep: Fields

    def check(self) -> None:
        check_selection(self.origin.call, self.keep, self.parent.fields)

    @cached_property
    def fields(self) -> Fields:
        return self.parent.fields.select(self.keep)

    facts = PASSES_ON

    @property
    def call_text(self) -> str:
        return f"project({self.keep})"


class NativeNode(AppendingNode):
    """A Spark expression: appends fields, or without outputs keeps the tuples where it is true."""

    expression: Native

    @cached_property
    def fields(self) -> Fields:
        return self.parent.fields + self.outputs

    @cached_property
    def facts(self) -> Facts:
        return _of_each_tuple(
            self.parent.fields if self.inputs is None else self.inputs,
            self.fields.select(self.outputs),
            self.expression,
        )

    @property
    def call_text(self) -> str:
        return _call(self.origin.call, self.inputs, self.expression.label, self.outputs)


class PartitionNode(StepNode):
    """Moves tuples between partitions: by the key `by`, by a `grouping`, or as `how` says."""

    moves = True

    how: How
    by: Fields | None = None
    grouping: CustomStreamGrouping | None = None

    def check(self) -> None:
        if self.how != "partitionBy":
            return
        by = self.by or Fields()
        check_selection(self.origin.call, by, self.parent.fields)
        if not by:
            raise PlanError(f"{self.origin.call}: no fields", "", (), "Or use shuffle().")
        check_keys(self.origin.call, self.parent.fields.select(by))

    @cached_property
    def facts(self) -> Facts:
        return _of_each_tuple(
            self.by or (self.parent.fields if self.grouping else Fields()), Fields(), self.grouping
        )

    @property
    def call_text(self) -> str:
        if self.grouping is not None:
            return f"{self.how}({operation_name(self.grouping)})"
        return f"{self.how}({self.by or ''})"


class AggregatingNode(StepNode):
    """Aggregates tuples, those of each group by themselves if there are groups."""

    group: Fields | None
    inputs: Fields
    aggregator: AnyAggregator
    outputs: Fields

    def check(self) -> None:
        call, before = self.origin.call, self.parent.fields
        check_selection(call, self.group or Fields(), before)
        check_selection(call, self.inputs, before)
        check_aggregate_shape(call, self.aggregator, self.inputs, self.outputs)
        check_new_fields(call, self.outputs, self.group or Fields())

    @cached_property
    def fields(self) -> Fields:
        before = self.parent.fields
        types = self.aggregator.infer_types(before.select(self.inputs))
        return before.select(self.group or Fields()) + self.outputs.with_types(types)

    @cached_property
    def facts(self) -> Facts:
        return Facts(
            reads=_grouped_by(self.group, self.inputs),
            makes=self.fields.select(self.outputs),
            operation=self.aggregator,
            # Trident aggregates a batch without tuples too, where there are no groups.
            acts_on_nothing=not self.group
            and (not isinstance(self.aggregator, Aggregator) or self.aggregator.acts_on_nothing),
            hands_on=False,
        )

    def _call_text(self, method: str) -> str:
        call = _call(method, self.inputs, operation_name(self.aggregator), self.outputs)
        return f"groupBy({self.group}).{call}" if self.group else call


class PartitionAggregateNode(AggregatingNode):
    """Aggregates within each partition."""

    @property
    def call_text(self) -> str:
        return self._call_text("partitionAggregate")


class AggregateNode(AggregatingNode):
    """Aggregates a whole batch; the exchange is part of the step."""

    moves = True

    @property
    def call_text(self) -> str:
        return self._call_text("aggregate")


class StateUpdateNode(StepNode):
    """Writes the batch to a state; its output is the new values."""

    state: StateDeclaration
    inputs: Fields
    updater: StateUpdater[Any]
    outputs: Fields
    group: Fields | None = None
    expiry: Expiry | None = None

    def check(self) -> None:
        check_selection(self.origin.call, self.reads, self.parent.fields)

    @cached_property
    def fields(self) -> Fields:
        return self.outputs

    @property
    def reads(self) -> Fields:
        """What the updater sees, and the field with times by which entries expire."""
        times = Fields() if self.expiry is None else Fields(*filter(None, [self.expiry.field]))
        return self.inputs + [name for name in times if name not in self.inputs]

    @cached_property
    def facts(self) -> Facts:
        return Facts(
            reads=_grouped_by(self.group, self.reads),
            makes=Fields.typed(
                (name, kind)
                for name, kind in self.outputs.types.items()
                if name not in (self.group or ())
            ),
            operation=self.updater,
            acts_on_nothing=self.updater.acts_on_nothing,
            hands_on=False,
        )

    @property
    def updates(self) -> StateDeclaration:
        return self.state

    @property
    def keeps_one_value(self) -> bool:
        """Whether the state is the aggregate of all tuples, not one of each group."""
        return isinstance(self.updater, CombinerAggStateUpdater | ReducerAggStateUpdater)

    @property
    def call_text(self) -> str:
        name = f'"{self.state.name}"'
        if isinstance(self.updater, RowWriter):
            return _call("partitionPersist", self.updater.label, self.inputs)
        if isinstance(self.updater, WindowUpdater):
            window, made = str(self.updater.window), operation_name(self.updater.aggregator)
            call = _call("window", window, name, self.updater.inputs, made)
            return f"groupBy({self.group}).{call}" if self.group else call
        expiry = None if self.expiry is None else str(self.expiry)
        if self.origin.call == "partitionPersist":
            updater = operation_name(self.updater)
            return _call("partitionPersist", name, self.inputs, updater, self.outputs, expiry)
        return _call("persist", name, type(self.updater).__name__, expiry)


class DeadLettersNode(Node):
    """The tuples that steps have failed with, and why; added when a topology starts."""

    failing: tuple[SparingNode, ...]

    @property
    def parents(self) -> tuple[Node, ...]:
        return self.failing

    @property
    def fields(self) -> Fields:
        return LETTER

    facts = Facts(
        reads=Fields(), makes=LETTER, operation=None, acts_on_nothing=False, hands_on=False
    )

    @property
    def call_text(self) -> str:
        return "dead letters"


class NewValuesNode(StepNode):
    """The new values of a state update, as a stream."""

    parent: StateUpdateNode

    facts = PASSES_ON

    @property
    def call_text(self) -> str:
        return f'newValuesStream("{self.parent.state.name}")'


class StaticStateNode(Node):
    """A state that this topology only reads."""

    state: StateDeclaration

    @property
    def parents(self) -> tuple[Node, ...]:
        return ()

    @cached_property
    def fields(self) -> Fields:
        return Fields()

    facts = PASSES_ON
    keeps_one_value = False  # as far as is known
    expiry = None  # which only what updates it says

    @property
    def call_text(self) -> str:
        return f'newStaticState("{self.state.name}")'


StateNode = StateUpdateNode | StaticStateNode
"""What declares a state."""


class StateQueryNode(AppendingNode):
    """Appends what a query finds in a state for the input fields."""

    state: StateNode
    inputs: Fields
    function: QueryFunction[Any, Any]

    @cached_property
    def fields(self) -> Fields:
        inputs = self.parent.fields.select(self.inputs)
        types = self.function.infer_state_types(inputs, self.state.fields)
        return self.parent.fields + self.outputs.with_types(types)

    @cached_property
    def facts(self) -> Facts:
        return _of_each_tuple(self.inputs, self.fields.select(self.outputs), self.function)

    @property
    def asks(self) -> StateNode:
        return self.state

    @property
    def call_text(self) -> str:
        name = f'"{self.state.state.name}"'
        return _call("stateQuery", name, self.inputs, operation_name(self.function), self.outputs)


class MergeNode(Node):
    """All tuples of several streams; fields by position, named as in the first or as given."""

    moves = True

    merged: tuple[Node, ...]
    outputs: Fields | None = None

    @property
    def parents(self) -> tuple[Node, ...]:
        return self.merged

    def check(self) -> None:
        for node in self.merged[1:]:
            check_width(self.origin.call, node.fields, self.merged[0].fields)
        check_types_agree(self.origin.call, [node.fields for node in self.merged])
        check_names(self.origin.call, self.outputs, self.merged[0].fields)

    @cached_property
    def fields(self) -> Fields:
        first = self.merged[0].fields
        common = map(common_type, self._types)
        return (self.outputs or Fields(*first.names)).with_types(common)

    @cached_property
    def _types(self) -> Sequence[tuple[str | None, ...]]:
        """The types of each field in the streams."""
        return list(zip(*(node.fields.types.values() for node in self.merged), strict=True))

    @cached_property
    def facts(self) -> Facts:
        return _converting(self.fields, self._types)

    @property
    def call_text(self) -> str:
        return f"merge({', '.join(str(parent.id) for parent in self.parents)})"

    def takes(self, position: int, wanted: Iterable[str]) -> Iterable[str]:
        theirs = self.merged[position].fields.names
        return [theirs[self.fields.index(name)] for name in wanted]


class JoinNode(Node):
    """The tuples of streams with equal keys; not `required` ones may lack; `compact`: the key
    once."""

    moves = True

    joined: tuple[Node, ...]
    keys: tuple[Fields, ...]
    required: tuple[bool, ...]
    compact: bool
    outputs: Fields

    @property
    def parents(self) -> tuple[Node, ...]:
        return self.joined

    def check(self) -> None:
        call = self.origin.call
        for node, key in zip(self.joined, self.keys, strict=True):
            check_selection(call, key, node.fields)
            check_keys(call, node.fields.select(key))
        check_join_keys(call, self.keys)
        check_types_agree(
            call,
            [node.fields.select(key) for node, key in zip(self.joined, self.keys, strict=True)],
        )
        made = [f"{of[0][0] + 1}.{of[0][1]}" for of in self._sources]
        check_names(call, self.outputs, made)

    @cached_property
    def _sources(self) -> tuple[tuple[tuple[int, str], ...], ...]:
        """Where each output field is taken from: a stream and its field; of several, the first
        whose stream isn't missing."""
        of_streams = enumerate(zip(self.joined, self.keys, strict=True))
        rest = [
            ((place, name),)
            for place, (node, key) in of_streams
            for name in node.fields
            if not (self.compact and name in key)
        ]
        if not self.compact:
            return tuple(rest)
        parts = zip(*(key.names for key in self.keys), strict=True)
        return (*(tuple(enumerate(names)) for names in parts), *rest)

    @cached_property
    def columns(self) -> Mapping[str, tuple[tuple[int, str], ...]]:
        """Where each output field is taken from: a stream and its field; of several, the first
        whose stream isn't missing."""
        return dict(zip(self.outputs.names, self._sources, strict=True))

    @cached_property
    def fields(self) -> Fields:
        return self.outputs.with_types(map(common_type, self._types))

    @cached_property
    def _types(self) -> Sequence[tuple[str | None, ...]]:
        """The types of what each output field is taken from."""
        return [
            tuple(self.joined[place].fields.types[name] for place, name in of)
            for of in self._sources
        ]

    @cached_property
    def facts(self) -> Facts:
        return replace(_converting(self.fields, self._types), hands_on=False)

    @property
    def call_text(self) -> str:
        shown = [
            f"{node.id} by {key}{'' if due else ' outer'}"
            for node, key, due in zip(self.joined, self.keys, self.required, strict=True)
        ]
        return f"join({'; '.join(shown)})"

    def takes(self, position: int, wanted: Iterable[str]) -> Iterable[str]:
        sources = (of for name in wanted for of in self.columns[name])
        return (*self.keys[position], *(name for place, name in sources if place == position))


class HintNode(StepNode):
    """Sets the number of partitions from the last exchange to here.

    Below a `StateUpdateNode` it sets the number that the update runs in.
    """

    parallelism: int

    def check(self) -> None:
        check_parallelism(self.origin.call, self.parallelism)

    facts = PASSES_ON

    @property
    def call_text(self) -> str:
        return f"parallelismHint({self.parallelism})"


class NameNode(StepNode):
    """A label for the steps up to here, in plans and progress."""

    label: str

    facts = PASSES_ON

    @property
    def call_text(self) -> str:
        return f'name("{self.label}")'


def _converting(fields: Fields, types: Sequence[tuple[str | None, ...]]) -> Facts:
    """The facts of a step in which fields of several types become one.

    `types` are those that the values of each field had before.
    """
    converted = [
        name
        for name, kinds in zip(fields, types, strict=True)
        if len(set(kinds)) > 1 and None not in kinds
    ]
    makes = fields.select(converted)
    return _of_each_tuple(Fields(), makes, None)


def _grouped_by(group: Fields | None, inputs: Fields) -> Fields:
    """The fields of a group and those that are read within it, each once."""
    return Fields.typed({**(group or Fields()).types, **inputs.types}.items())


def _call(method: str, *arguments: Fields | str | None) -> str:
    """A call as it is written, without the arguments that were left out."""
    shown = [
        f"[{argument}]" if isinstance(argument, Fields) and len(argument) > 1 else str(argument)
        for argument in arguments
        if argument
    ]
    return f"{method}({', '.join(shown)})"
