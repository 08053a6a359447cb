"""The nodes of a plan: one frozen dataclass for each kind of step.

A node is compared by identity, knows its parents, and derives its output fields from them, with
types where they are known. Constructors check what a node needs to be meaningful by itself, so
that the call that is wrong is the call that fails.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as parts_of
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
    check_aggregate,
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
"""What happens if a step fails with a tuple: the run stops, or continues without it."""
How = Literal[
    "partitionBy", "shuffle", "localOrShuffle", "global", "batchGlobal", "broadcast", "partition"
]


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
    parents: tuple[Node, ...] = ()
    """The steps whose output it takes."""
    asks: StateNode | None = None
    """The step that declares the state which it looks up."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, kw_only=True, repr=False)(cls)

    def __post_init__(self) -> None:
        self.check()
        for position, parent in enumerate(self.parents):
            self._check_taken(parent, self.takes(position, self.fields))

    def check(self) -> None:
        """Raise `PlanError` where the step is meaningless."""

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

    @property
    def reads(self) -> Fields:
        """The fields of its parents that it reads, whether it hands them on or not."""
        return Fields()

    @property
    def makes(self) -> Fields:
        """The fields whose values it makes; it hands on all others."""
        return Fields() if self.parents else self.fields

    @cached_property
    def operation(self) -> Operation | Native | None:
        """What it runs: the one of its parts that is an operation."""
        parts = (getattr(self, part.name) for part in parts_of(self))
        return next((part for part in parts if isinstance(part, Operation | Native)), None)

    @property
    def acts_on_nothing(self) -> bool:
        """Whether it gives tuples, or runs the user's operation, though it is handed no tuple."""
        return False

    @property
    def hands_on(self) -> bool:
        """Whether each of its tuples is made of one, so that it can tell where that came from."""
        return True

    @property
    @abstractmethod
    def call_text(self) -> str:
        """The call that declared the step, in one line; plans and errors name the step by it."""

    @property
    def stream_text(self) -> str:
        """What to show of a stream that begins here; empty for all other steps."""
        return ""

    @property
    def updates(self) -> StateDeclaration | None:
        return None

    @property
    def asks_updated(self) -> StateUpdateNode | None:
        """What updates the state that it looks up; None where this topology doesn't."""
        return self.asks if isinstance(self.asks, StateUpdateNode) else None

    def takes(self, position: int, wanted: Iterable[str]) -> Iterable[str]:
        """The fields of a parent that the step needs to deliver the `wanted` ones of its own."""
        makes = self.makes
        return (*self.reads, *(name for name in wanted if name not in makes))

    def _check_taken(self, parent: Node, names: Iterable[str]) -> None:
        for name in names:
            if name not in parent.fields:
                what = f"{self.origin.call}: a {type(self).__name__} takes an unknown field"
                advice = "Where the node makes it itself, name it in its `makes`."
                raise FieldError(what, name, parent.fields.names, advice)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.fields!r} at {self.origin}>"


class StepNode(Node):
    """A step with one parent; by itself it passes the fields on."""

    @property
    def parent(self) -> Node:
        return self.parents[0]

    @cached_property
    def fields(self) -> Fields:
        return self.parent.fields

    def check(self) -> None:
        check_selection(self.origin.call, self.reads, self.parent.fields)


class OperationNode(StepNode):
    """A step that runs an operation on the `inputs`, of each group by itself if it has groups."""

    inputs: Fields
    outputs: Fields | None = None
    group: Fields | None = None

    @property
    def reads(self) -> Fields:
        return Fields.typed({**(self.group or Fields()).types, **self.inputs.types}.items())

    @cached_property
    def makes(self) -> Fields:
        group = self.group or ()
        return self.fields.select([name for name in self.outputs or () if name not in group])


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

    declared: Fields
    hands_on = False

    @property
    def fields(self) -> Fields:
        return self.declared


class SourceNode(BeginningNode):
    """A stream's beginning: a DataFrame or a spout; rows tell their partition by
    `partition_fields`."""

    stream_id: str
    source: Any
    kind: Kind
    clock: Clock
    output_mode: OutputMode = "append"
    partition_fields: Fields = field(default_factory=Fields)
    history: Any = None
    """For a streaming DataFrame: a batch DataFrame, whose rows come first."""
    until: str = ""
    """Where the history ends and the stream begins, if until= says so."""

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
        """The schema as the log keeps it, with everything else that decides which rows come."""
        kinds = self.fields.types.items()
        text = ", ".join(f"{name} {kind}" if kind else name for name, kind in kinds)
        text += "" if self.output_mode == "append" else f"; {self.output_mode}"
        return f"{text}; history until {self.until}" if self.until else text


class DRPCNode(BeginningNode):
    """The beginning of a query: one tuple ``args``, a string."""

    function: str
    engine: QueryEngine = "local"
    declared: Fields = Fields(args=str)

    @property
    def call_text(self) -> str:
        engine = "" if self.engine == "local" else f', engine="{self.engine}"'
        return f'newDRPCStream("{self.function}"{engine})'


class StaticStreamNode(BeginningNode):
    """The rows of a batch DataFrame, for queries that Spark answers."""

    frame: Any

    @property
    def stream_id(self) -> str:
        """What tells it from other streams."""
        return f"static {self.id}"

    @property
    def call_text(self) -> str:
        return f"newStaticStream({type(self.frame).__name__})"

    @property
    def stream_text(self) -> str:
        return f"static stream of {self.fields}"


class SparingNode(OperationNode):
    """A step that may continue without the tuples with which its operation fails.

    Without `on_error` the start decides.
    """

    on_error: OnError | None = None

    def check(self) -> None:
        super().check()
        check_on_error(self.origin.call, self.on_error, get_args(OnError), self.of_query)

    def policy(self, default: OnError) -> OnError:
        """What happens to its bad tuples; a request always fails with them."""
        return self.on_error or ("fail" if self.of_query else default)

    @property
    def _on_error_text(self) -> str:
        return f'on_error="{self.on_error}"' if self.on_error else ""


class AppendingNode(OperationNode):
    """Appends the `outputs` to the fields."""

    outputs: Fields

    @cached_property
    def fields(self) -> Fields:
        types = self._types(self.parent.fields.select(self.inputs))
        return self.parent.fields + self.outputs.with_types(types)

    @abstractmethod
    def _types(self, inputs: Fields) -> Sequence[str | None]:
        """The types of the outputs, as far as they are known."""

    def check(self) -> None:
        super().check()
        check_new_fields(self.origin.call, self.outputs, self.parent.fields)


class EachNode(SparingNode, AppendingNode):
    """Appends what a function makes of the inputs."""

    function: Function

    def _types(self, inputs: Fields) -> Sequence[str | None]:
        return self.function.infer_types(inputs)

    @property
    def call_text(self) -> str:
        operation = operation_name(self.function)
        if isinstance(self.function, CallableColumn):
            return _call("withColumn", self.outputs, operation, self.inputs, self._on_error_text)
        return _call("each", self.inputs, operation, self.outputs, self._on_error_text)


class FilterNode(SparingNode):
    """Keeps some tuples."""

    filter: Filter

    @property
    def call_text(self) -> str:
        operation = operation_name(self.filter)
        return _call(self.origin.call, self.inputs, operation, self._on_error_text)


class ReplacingNode(SparingNode):
    """Replaces each tuple by others; without ``outputs`` the names, types and number of fields
    stay."""

    function: MapFunction | FlatMapFunction | Vectorised

    @cached_property
    def fields(self) -> Fields:
        before, inferred = self.parent.fields, self.function.infer_types(self.parent.fields)
        if self.outputs is not None:
            return self.outputs.with_types(inferred)
        return Fields(*before.names).with_types(inferred).with_types(before.types.values())

    @property
    def makes(self) -> Fields:
        return self.fields

    @property
    def hands_on(self) -> bool:
        return not isinstance(self.function, Vectorised)


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


class PeekNode(OperationNode):
    """Shows each tuple to a consumer."""

    consumer: Consumer

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

    @property
    def call_text(self) -> str:
        return f"project({self.keep})"


class NativeNode(AppendingNode):
    """A Spark expression: appends fields, or without outputs keeps the tuples where it is true."""

    expression: Native

    def _types(self, inputs: Fields) -> Sequence[str | None]:
        return ()

    @property
    def call_text(self) -> str:
        named = None if self.inputs == self.parent.fields else self.inputs
        return _call(self.origin.call, named, self.expression.label, self.outputs)


class PartitionNode(StepNode):
    """Moves tuples between partitions: by the key `by`, by a `grouping`, or as `how` says."""

    moves = True

    how: How
    by: Fields | None = None
    grouping: CustomStreamGrouping | None = None

    def check(self) -> None:
        super().check()
        if self.how == "partitionBy":
            if not self.by:
                raise PlanError(f"{self.origin.call}: no fields", "", (), "Or use shuffle().")
            check_keys(self.origin.call, self.parent.fields.select(self.by))

    @property
    def reads(self) -> Fields:
        return self.by or (self.parent.fields if self.grouping else Fields())

    @property
    def call_text(self) -> str:
        if self.grouping is not None:
            return f"{self.how}({operation_name(self.grouping)})"
        return f"{self.how}({self.by or ''})"


class AggregatingNode(OperationNode):
    """Aggregates tuples, those of each group by themselves if there are groups."""

    group: Fields | None
    aggregator: AnyAggregator
    outputs: Fields
    hands_on = False

    @cached_property
    def fields(self) -> Fields:
        before, given = self.parent.fields, (self.inputs, self.outputs)
        types = check_aggregate(self.origin.call, self.aggregator, before, self.group, *given)
        return before.select(self.group or Fields()) + self.outputs.with_types(types)

    @property
    def acts_on_nothing(self) -> bool:
        # Trident aggregates a batch without tuples too, where there are no groups.
        aggregator = self.aggregator
        return not self.group and not (
            isinstance(aggregator, Aggregator) and not aggregator.acts_on_nothing
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


class StateUpdateNode(OperationNode):
    """Writes the batch to a state; its output is the new values."""

    state: StateDeclaration
    updater: StateUpdater[Any]
    outputs: Fields
    expiry: Expiry | None = None
    hands_on = False

    @cached_property
    def fields(self) -> Fields:
        return self.outputs

    @property
    def reads(self) -> Fields:
        """What the updater sees, and the field with times by which entries expire."""
        seen, time = super().reads, self.expiry.field if self.expiry else None
        return seen if time is None or time in seen else seen + Fields(time)

    @property
    def acts_on_nothing(self) -> bool:
        return self.updater.acts_on_nothing

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
    """The tuples with which steps failed, and why; added when a topology starts."""

    parents: tuple[SparingNode, ...]
    fields = makes = LETTER
    hands_on = False

    @property
    def call_text(self) -> str:
        return "dead letters"


class NewValuesNode(StepNode):
    """The new values of a state update, as a stream."""

    parents: tuple[StateUpdateNode, ...]

    @property
    def parent(self) -> StateUpdateNode:
        return self.parents[0]

    @property
    def call_text(self) -> str:
        return f'newValuesStream("{self.parent.state.name}")'


class StaticStateNode(Node):
    """A state that this topology only reads."""

    state: StateDeclaration
    fields = Fields()

    keeps_one_value = False  # as far as is known
    expiry = None  # which only what updates it says

    @property
    def call_text(self) -> str:
        return f'newStaticState("{self.state.name}")'


StateNode = StateUpdateNode | StaticStateNode
"""What declares a state."""


class StateQueryNode(AppendingNode):
    """Appends what a query finds in a state for the inputs."""

    asks: StateNode
    function: QueryFunction[Any, Any]

    def _types(self, inputs: Fields) -> Sequence[str | None]:
        return self.function.infer_state_types(inputs, self.asks.fields)

    @property
    def call_text(self) -> str:
        name = f'"{self.asks.state.name}"'
        return _call("stateQuery", name, self.inputs, operation_name(self.function), self.outputs)


class MergeNode(Node):
    """All tuples of several streams; fields by position, named as in the first or as given."""

    moves = True

    outputs: Fields | None = None

    def check(self) -> None:
        for node in self.parents[1:]:
            check_width(self.origin.call, node.fields, self.parents[0].fields)
        check_types_agree(self.origin.call, [node.fields for node in self.parents])
        check_names(self.origin.call, self.outputs, self.parents[0].fields)

    @cached_property
    def fields(self) -> Fields:
        first = self.parents[0].fields
        common = map(common_type, self._types)
        return (self.outputs or Fields(*first.names)).with_types(common)

    @cached_property
    def _types(self) -> Sequence[tuple[str | None, ...]]:
        """The types of each field in the streams."""
        return list(zip(*(node.fields.types.values() for node in self.parents), strict=True))

    @property
    def makes(self) -> Fields:
        return _converted(self.fields, self._types)

    @property
    def call_text(self) -> str:
        return f"merge({', '.join(str(parent.id) for parent in self.parents)})"

    def takes(self, position: int, wanted: Iterable[str]) -> Iterable[str]:
        theirs = self.parents[position].fields.names
        return [theirs[self.fields.index(name)] for name in wanted]


class JoinNode(Node):
    """The tuples of streams with equal keys. A stream that is not `required` may lack the key;
    `compact` keeps the key once."""

    moves = True

    keys: tuple[Fields, ...]
    required: tuple[bool, ...]
    compact: bool
    outputs: Fields
    hands_on = False

    def check(self) -> None:
        call = self.origin.call
        keys = [
            check_selection(call, key, node.fields)
            for node, key in zip(self.parents, self.keys, strict=True)
        ]
        for key in keys:
            check_keys(call, key)
        check_join_keys(call, keys)
        check_types_agree(call, keys)
        made = [f"{of[0][0] + 1}.{of[0][1]}" for of in self._sources]
        check_names(call, self.outputs, made)

    @cached_property
    def _sources(self) -> tuple[tuple[tuple[int, str], ...], ...]:
        """The same, in the order of the output fields."""
        of_streams = enumerate(zip(self.parents, self.keys, strict=True))
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
            tuple(self.parents[place].fields.types[name] for place, name in of)
            for of in self._sources
        ]

    @property
    def makes(self) -> Fields:
        return _converted(self.fields, self._types)

    @property
    def call_text(self) -> str:
        shown = [
            f"{node.id} by {key}{'' if due else ' outer'}"
            for node, key, due in zip(self.parents, self.keys, self.required, strict=True)
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

    @property
    def call_text(self) -> str:
        return f"parallelismHint({self.parallelism})"


class NameNode(StepNode):
    """A label for the steps up to here, in plans and progress."""

    label: str

    @property
    def call_text(self) -> str:
        return f'name("{self.label}")'


def _converted(fields: Fields, types: Sequence[tuple[str | None, ...]]) -> Fields:
    """The fields in which values of several types become one; `types` are those before."""
    kinds = zip(fields, types, strict=True)
    return fields.select([name for name, of in kinds if len(set(of)) > 1 and None not in of])


def _call(method: str, *arguments: Fields | str | None) -> str:
    """A call as it is written, without the arguments that were left out."""
    shown = [
        f"[{argument}]" if isinstance(argument, Fields) and len(argument) > 1 else str(argument)
        for argument in arguments
        if argument
    ]
    return f"{method}({', '.join(shown)})"
