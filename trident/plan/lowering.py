"""Makes nodes of the arguments of a fluent call.

The arguments are read in Storm's order, ``([inputs,] operation [, outputs])``. A call that is more
than one step is spelled out here, so that engines know few kinds of node:
``persistentAggregate`` is an aggregate or an exchange, and an update of a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast, get_args

from trident.backends.rows import Rows
from trident.backends.state_spec import StateSpec
from trident.errors import OperationTypeError, PlanError, described
from trident.operations.annotations import callable_name, known_type
from trident.operations.builtin import Max
from trident.operations.callables import (
    CallableColumn,
    CallableFilter,
    CallableFlatMap,
    CallableFunction,
    CallableMap,
    Native,
)
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    QueryFunction,
    ReducerAggregator,
    StateUpdater,
    operation_name,
)
from trident.operations.joining import JoinOutFieldsMode, JoinType, KeyFits
from trident.operations.kept_answers import KEPT, KeptAnswers
from trident.operations.kept_tuples import Comparator, GreatestTuple, LeastTuple, natural_order
from trident.operations.row_writer import RowWriter
from trident.operations.state_updaters import (
    CombinerAggStateUpdater,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    ReducerAggStateUpdater,
)
from trident.plan.arguments import (
    Given,
    as_instance,
    as_operation,
)
from trident.plan.builder import Builder, Position
from trident.plan.chain import Chain
from trident.plan.expiring import NEVER, Expiring, expiry_of
from trident.plan.guarantee import STRENGTH
from trident.plan.history import split_history
from trident.plan.nodes import (
    AggregateNode,
    DRPCNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    JoinNode,
    Kind,
    MapNode,
    NativeNode,
    Node,
    OnError,
    OutputMode,
    PartitionAggregateNode,
    PartitionNode,
    QueryEngine,
    SourceNode,
    StateNode,
    StateQueryNode,
    StateUpdateNode,
    StaticStreamNode,
)
from trident.plan.query_checks import check_queryable, check_updatable, new_name
from trident.plan.step_checks import check_aggregate, check_ordered, check_selection
from trident.spouts.interfaces import ITridentDataSource
from trident.states.values import StateType
from trident.tuples.fields import Fields, FieldsLike
from trident.windows.expiry import Expiry


def new_stream(
    builder: Builder,
    id: object,
    source: Any,
    kind: Kind | None,
    output_mode: OutputMode | None,
    partition_fields: FieldsLike | None = None,
    history: Any = None,
    until: object = None,
) -> SourceNode:
    """``newStream(id, source, kind, outputMode=…, partitionFields=…, history=…, until=…)``."""
    stream_id = builder.check_stream_id("newStream", id)
    if kind is not None and kind not in STRENGTH:
        raise PlanError("newStream: unknown kind of source", str(kind), STRENGTH)
    modes = get_args(OutputMode)
    if output_mode is not None and output_mode not in modes:
        raise PlanError("newStream: unknown output mode", str(output_mode), modes)
    if isinstance(source, ITridentDataSource):
        if output_mode is not None:
            advice = "Leave it out: it says which rows of an aggregating DataFrame are a batch."
            raise PlanError("newStream: a spout has no output mode, found", output_mode, (), advice)
        if partition_fields is not None:
            advice = "Leave them out: a partitioned spout names its partitions itself."
            what = "newStream: a spout has no fields for its partitions, found"
            raise PlanError(what, str(partition_fields), (), advice)
        if history is not None or until is not None:
            advice = "Leave it out: a spout begins where its own options say."
            raise PlanError("newStream: a spout has no history= and no until=", "", (), advice)
        declared = Fields.of(source.getOutputFields())
        _check_kind(source, kind)
        parts = {"declared": declared, "kind": kind or source.kind, "clock": "spout"}
        return builder.add(SourceNode, stream_id=stream_id, source=source, **parts)
    if not _is_frame(source):
        what = "newStream: expected a streaming DataFrame or a spout, found"
        found = f"the class {source.__name__}" if isinstance(source, type) else repr(source)[:60]
        advice = "Use spark.readStream…load(), FixedBatchSpout(…) or FeederBatchSpout(…)."
        raise OperationTypeError(what, found, (), advice)
    if not source.isStreaming:
        advice = "Make it with spark.readStream, or feed its rows to a FixedBatchSpout. "
        advice += "newStaticStream() takes it for queries."
        raise OperationTypeError("newStream: the DataFrame isn't a stream", "", (), advice)
    declared = _fields_of(source)
    if partition_fields is None:
        partition_fields = _partition_of_kafka(declared)
    partition_fields = check_selection("newStream", Fields.of(partition_fields), declared)
    if history is not None:
        _check_history(history, declared, output_mode)
    elif until is not None:
        advice = "It says where history= ends. A stream alone begins where its own options say."
        raise PlanError("newStream: until= without history=", "", (), advice)
    until_text = ""
    if until is not None:
        source, history, until_text = split_history(source, history, until, declared)
    return builder.add(
        SourceNode,
        stream_id=stream_id,
        source=source,
        declared=declared,
        kind=kind or "opaque",
        clock="dataframe",
        output_mode=output_mode or "append",
        partition_fields=partition_fields,
        history=history,
        until=until_text,
    )


def _check_history(history: Any, declared: Fields, output_mode: OutputMode | None) -> None:
    if not _is_frame(history) or history.isStreaming:
        advice = "Make it with spark.read; what comes after its rows is the stream."
        raise OperationTypeError("newStream: history= takes a batch DataFrame", "", (), advice)
    found = _fields_of(history)
    if found.names != declared.names or dict(found.types) != dict(declared.types):
        advice = f"Select the stream's: {declared}."
        raise PlanError(
            "newStream: history= has other fields than the stream, found", str(found), (), advice
        )
    if output_mode not in (None, "append"):
        advice = "What Spark aggregates of the stream would not know the history: aggregate here."
        raise PlanError(
            "newStream: history= can't be given with outputMode=", output_mode, (), advice
        )


def new_drpc_stream(
    builder: Builder, function: object, answers: object, engine: QueryEngine
) -> DRPCNode:
    """``newDRPCStream(function, answers=…, engine=…)``."""
    call = "newDRPCStream"
    name = builder.check_function(call, function)
    engines = get_args(QueryEngine)
    if engine not in engines:
        raise PlanError(f"{call}: unknown engine", str(engine), engines)
    if engine == "spark" and answers is not None:
        advice = "Leave out one of the two: a query changes nothing, so it may be repeated."
        what = f"{call}: answers= is for requests that update a state, and Spark can't do that for"
        raise PlanError(what, name, (), advice)
    with builder.together():
        source = builder.add(DRPCNode, function=name, engine=engine)
        if answers is not None:
            state = builder.state(call, answers, None, (name, "answers"))
            if state.factory.kind is not StateType.OPAQUE:
                what = f"{call}: the answers are kept in an opaque map, such as"
                advice = 'Give the URL of a store without kind=, as in answers="sqlite:answers.db".'
                raise PlanError(what, "MemoryMapState.Factory()", (), advice)
            builder.add(
                StateUpdateNode,
                parents=(source,),
                state=state,
                inputs=Fields(),
                updater=KeptAnswers(),
                outputs=Fields(),
                expiry=Expiry(int(KEPT * 1000)),
            )
    return source


def new_static_stream(builder: Builder, frame: Any) -> StaticStreamNode:
    """``newStaticStream(frame)``."""
    call = "newStaticStream"
    if not _is_frame(frame):
        what = f"{call}: expected a batch DataFrame, found"
        raise OperationTypeError(
            what, described(frame), (), "Make it with spark.read, for example."
        )
    if frame.isStreaming:
        advice = "Make it with spark.read; newStream() takes streaming ones."
        raise OperationTypeError(f"{call}: the DataFrame is a stream", "", (), advice)
    return builder.add(StaticStreamNode, frame=frame, declared=_fields_of(frame))


def _is_frame(given: object) -> bool:
    return hasattr(given, "isStreaming") and hasattr(given, "schema")


def _fields_of(frame: Any) -> Fields:
    columns = frame.schema.fields
    return Fields.typed((c.name, known_type(c.dataType.simpleString())) for c in columns)


def _partition_of_kafka(columns: Fields) -> Fields:
    """The columns that tell the partition of a record, where they are named as those of Kafka."""
    kinds = {"topic": ("string",), "partition": ("int", "long"), "offset": ("long",)}
    found = [name for name, kind in kinds.items() if columns.types.get(name) in kind]
    telling = [name for name in found if name != "offset"]
    return columns.select(telling) if "partition" in found and len(found) > 1 else Fields()


def _check_kind(spout: ITridentDataSource, declared: Kind | None) -> None:
    name, own = type(spout).__name__, getattr(spout, "kind", None)
    if own not in STRENGTH:
        advice = f"Set the attribute kind of {name}."
        raise PlanError(f"newStream: {name} is of an unknown kind", str(own), STRENGTH, advice)
    can_be = STRENGTH.index(spout.strongest)
    if STRENGTH.index(own) > can_be:
        what = f"newStream: {name} has an attribute kind that its interface can't keep"
        raise PlanError(what, own, STRENGTH[: can_be + 1])
    if declared is not None and STRENGTH.index(declared) > STRENGTH.index(own):
        what = f"newStream: {name} is {own}, it can't be declared"
        advice = "If it does replay so, set the attribute kind of its class."
        weak = STRENGTH.index(declared) > can_be
        raise PlanError(what, declared, (), "" if weak else advice)


def each(at: Position, given: Given, on_error: OnError | None) -> Node:
    """``each([inputs,] function, outputs)`` or ``each([inputs,] filter)``."""
    if given.outputs is None:
        return filter_tuples("each", at, given, on_error)
    seen = _check_inputs("each", at, given.inputs)
    function = as_operation("each", given.operation, CallableFunction, seen)
    return _append("each", at, given._replace(operation=function), seen, on_error)


def with_column(
    at: Position,
    name: Any,
    function: object,
    inputs: FieldsLike | None,
    on_error: OnError | None,
) -> Node:
    """``withColumn(name, function [, inputs])``; without inputs the function sees all fields."""
    call = "withColumn"
    if callable(name) and not callable(function):
        advice = 'Write withColumn("doubled", lambda n: 2 * n, "n").'
        raise OperationTypeError(f"{call}: the name of the new field comes first", "", (), advice)
    outputs = Fields.of(name)
    if len(outputs) != 1:
        advice = "Name one, or use each(inputs, function, outputs) for several."
        raise PlanError(f"{call}: expected one new field, found", str(outputs), (), advice)
    named = None if inputs is None else Fields.of(inputs)
    seen = at.fields if named is None else _check_inputs(call, at, named)
    column = as_operation(call, function, CallableColumn, seen)
    return _append(call, at, Given(named, column, outputs), seen, on_error)


def _append(call: str, at: Position, given: Given, seen: Fields, on_error: OnError | None) -> Node:
    """Append what a function makes of the fields that it has `seen`, or an expression."""
    _, function, outputs = given
    if isinstance(function, Native):
        return _native(call, at, given, on_error)
    return at.add(EachNode, inputs=seen, function=function, outputs=outputs, on_error=on_error)


def filter_tuples(call: str, at: Position, given: Given, on_error: OnError | None) -> Node:
    """``filter([inputs,] filter)``; without inputs the filter sees all fields."""
    seen = at.fields if given.inputs is None else _check_inputs(call, at, given.inputs)
    filter = as_operation(call, given.operation, CallableFilter, seen)
    if isinstance(filter, Native):
        return _native(call, at, given, on_error)
    return at.add(FilterNode, inputs=seen, filter=filter, on_error=on_error)


def _native(call: str, at: Position, given: Given, on_error: OnError | None) -> NativeNode:
    """Add a Spark expression, which may read any field where it is not said which ones."""
    inputs, expression, outputs = given
    if on_error is not None:
        what = f"{call}: Spark can't leave out tuples that fail, so on_error= can't be given with"
        advice = "Leave it out, and use a function that gives null, such as try_cast."
        raise PlanError(what, expression.label, (), advice)
    seen = at.fields if inputs is None else inputs
    return at.add(NativeNode, expression=expression, inputs=seen, outputs=outputs or Fields())


def map_each(
    at: Position, given: object, outputs: Fields | None, on_error: OnError | None
) -> MapNode:
    """``map(function [, outputs])``."""
    seen, parts = at.fields, {"outputs": outputs, "on_error": on_error}
    function = as_operation("map", given, CallableMap, seen)
    return at.add(MapNode, inputs=seen, function=function, **parts)


def flat_map(
    at: Position, given: object, outputs: Fields | None, on_error: OnError | None
) -> FlatMapNode:
    """``flatMap(function [, outputs])``."""
    seen, parts = at.fields, {"outputs": outputs, "on_error": on_error}
    function = as_operation("flatMap", given, CallableFlatMap, seen)
    return at.add(FlatMapNode, inputs=seen, function=function, **parts)


def aggregate(
    kind: type[AggregateNode | PartitionAggregateNode], call: str, at: Position, given: Given
) -> Node:
    """``aggregate([inputs,] aggregator, outputs)``, and ``partitionAggregate`` with the same."""
    inputs, operation, outputs = given
    return at.add(
        kind,
        group=at.group,
        inputs=inputs or Fields(),
        aggregator=as_instance(call, operation, CombinerAggregator, ReducerAggregator, Aggregator),
        outputs=outputs or Fields(),
    )


def join(
    builder: Builder,
    joined: Sequence[Node],
    keys: Sequence[Any],
    arguments: Sequence[Any],
    on_error: OnError | None,
) -> JoinNode:
    """``join(streams, keys, outputs [, type] [, mode])``; with `on_error` the keys are tried
    before."""
    call = "join"
    if len(joined) < 2:
        raise PlanError(f"{call}: expected two streams or more, found", str(len(joined)))
    if len(keys) != len(joined):
        what = f"{call}: expected the key fields of each of {len(joined)} streams, found"
        raise PlanError(what, str(len(keys)), (), 'Write join([one, other], ["id", "user"], …).')
    given = list(arguments)
    if not given or isinstance(given[0], JoinType | JoinOutFieldsMode):
        advice = "Name all output fields after the streams and their keys."
        raise OperationTypeError(f"{call}: no output fields", "", (), advice)
    outputs = Fields.of(given.pop(0))
    types: Any = given.pop(0) if given and not isinstance(given[0], JoinOutFieldsMode) else None
    mode: Any = given.pop(0) if given else JoinOutFieldsMode.COMPACT
    if given or not isinstance(mode, JoinOutFieldsMode):
        what = f"{call}: expected a JoinType or some, then a JoinOutFieldsMode, found"
        raise OperationTypeError(what, described(given[0] if given else mode))
    required, by = _required_streams(call, types, len(joined)), tuple(map(Fields.of, keys))
    with builder.together():
        if on_error is not None:
            joined = [
                filter_tuples(call, Position(builder, node), Given(key, KeyFits(), None), on_error)
                for node, key in zip(joined, by, strict=True)
            ]
        return builder.add(
            JoinNode,
            parents=tuple(joined),
            keys=by,
            required=required,
            compact=mode is JoinOutFieldsMode.COMPACT,
            outputs=outputs,
        )


def _required_streams(call: str, types: Any, count: int) -> tuple[bool, ...]:
    """Which streams of a join have to have the key."""
    of_each = [types or JoinType.INNER] * count if types in (None, *JoinType) else types
    if not isinstance(of_each, list | tuple) or not all(
        isinstance(each, JoinType) for each in of_each
    ):
        advice = "Write JoinType.INNER, JoinType.OUTER or JoinType.mixed(…)."
        raise OperationTypeError(
            f"{call}: expected a JoinType, found", described(types), (), advice
        )
    if len(of_each) != count:
        what = f"{call}: expected a JoinType of each of {count} streams, found"
        raise PlanError(what, str(len(of_each)))
    return tuple(each is JoinType.INNER for each in of_each)


def min_or_max(
    kind: type[LeastTuple], at: Position, comparator: Comparator
) -> PartitionAggregateNode:
    """``min(comparator)`` and ``max(comparator)``."""
    call = _EXTREMES[kind]
    compare, shown = _read_order(call, comparator)
    return _keep_tuple(at, kind(None, compare, f"{call}({shown})"))


def min_or_max_by(
    kind: type[LeastTuple], at: Position, field: str, comparator: Comparator | None
) -> PartitionAggregateNode:
    """``minBy(field [, comparator])`` and ``maxBy(field [, comparator])``."""
    call = f"{_EXTREMES[kind]}By"
    by = check_selection(call, Fields.of(field), at.fields)
    if len(by) != 1:
        advice = f"Give one field, or a comparator of tuples to {_EXTREMES[kind]}()."
        raise PlanError(f"{call}: expected one field, found", str(by) or "none", (), advice)
    [name] = by
    if comparator is None:
        advice = f"Give a comparator of two values: {call}({name!r}, comparator)."
        check_ordered(call, by, advice)
    compare, shown = (natural_order, "") if comparator is None else _read_order(call, comparator)
    label = f"{call}({', '.join(filter(None, (name, shown)))})"
    return _keep_tuple(at, kind(at.fields.index(name), compare, label))


_EXTREMES: dict[type[LeastTuple], str] = {LeastTuple: "min", GreatestTuple: "max"}


def _read_order(call: str, comparator: object) -> tuple[Comparator, str]:
    if isinstance(comparator, type) or not callable(comparator):
        advice = "It is called with two of them, and returns a number below, equal to or above 0."
        what = f"{call}: expected a comparator, found"
        raise OperationTypeError(what, described(comparator), (), advice)
    return comparator, callable_name(comparator)


def _keep_tuple(at: Position, aggregator: LeastTuple) -> PartitionAggregateNode:
    return at.add(
        PartitionAggregateNode,
        group=None,
        inputs=Fields(*at.fields.names),
        aggregator=aggregator,
        outputs=at.fields,
    )


def persistent_aggregate(
    at: Position, state: object, given: Given, name: str | None, expiring: Expiring = NEVER
) -> StateUpdateNode:
    """``persistentAggregate(state, [inputs,] aggregator, outputs)``."""
    call, group = "persistentAggregate", at.group
    inputs, operation, outputs = given
    inputs, outputs = inputs or Fields(), outputs or Fields()
    key = group and at.fields.select(group)
    declaration = at.builder.state(call, state, name, outputs, key, operation)
    aggregator = as_instance(call, operation, CombinerAggregator, ReducerAggregator)
    expiry = expiry_of(call, expiring, declaration, at.fields)
    if expiry is not None and group is None:
        advice = "Leave expire_after= out: an aggregate without groups is a single value."
        raise PlanError(f"{call}: only entries of groups expire, found none", "", (), advice)
    updater: StateUpdater[Any]
    if isinstance(aggregator, CombinerAggregator):
        # The batch's own aggregates are combined with the stored ones.
        if expiry is None or expiry.field is None:
            before = aggregate(AggregateNode, call, at, given)
        else:
            times = Fields(new_name((group or Fields()) + outputs, f"last_{expiry.field}"))
            latest = Given(Fields(expiry.field), Max(), times)
            before = Chain(at).then(call, given).then(call, latest).end(AggregateNode)
            expiry = replace(expiry, field=times.names[0])
        own = copy_combiner(aggregator)
        updater = (
            CombinerAggStateUpdater(own)
            if group is None
            else MapCombinerAggStateUpdater(own, group, outputs.names[0])
        )
        inputs = outputs = before.fields.select((group or Fields()) + outputs)
    else:
        # The batch's tuples are moved by key, and reduced onto the stored values.
        types = check_aggregate(call, aggregator, at.fields, group, inputs, outputs)
        seen, grouped = at.fields.select(inputs), group or Fields()
        before = at.add(PartitionNode, how="global" if group is None else "partitionBy", by=group)
        updater = (
            ReducerAggStateUpdater(aggregator)
            if group is None
            else MapReducerAggStateUpdater(aggregator, group, seen)
        )
        inputs = grouped + [name for name in inputs if name not in grouped]
        outputs = at.fields.select(grouped) + outputs.with_types(types)
    update = Position(at.builder, before).add(
        StateUpdateNode,
        state=declaration,
        inputs=inputs,
        updater=updater,
        outputs=outputs,
        group=group,
        expiry=expiry,
    )
    check_updatable(call, updater, declaration)
    return update


def copy_combiner(combiner: CombinerAggregator[Any]) -> CombinerAggregator[Any]:
    """A copy of the combiner for a second step, as each step prepares an operation of its own; the
    combiner itself where it can't be copied."""
    try:
        return deepcopy(combiner)
    except Exception:
        return combiner


def partition_persist(
    at: Position, state: object, given: Given, name: str | None, expiring: Expiring = NEVER
) -> StateUpdateNode:
    """``partitionPersist(state, [inputs,] updater [, outputs])``."""
    call = "partitionPersist"
    inputs, operation, outputs = given
    declaration = at.builder.state(call, state, name, outputs or Fields(), None, operation)
    updater = as_instance(call, operation, StateUpdater)
    seen = _check_inputs(call, at, inputs)
    return at.add(
        StateUpdateNode,
        state=declaration,
        inputs=seen,
        updater=updater,
        outputs=(outputs or Fields()).with_types(updater.infer_types(seen)),
        expiry=expiry_of(call, expiring, declaration, at.fields),
    )


def persist_rows(
    at: Position, spec: StateSpec, inputs: Fields | None, name: str | None
) -> StateUpdateNode:
    """``partitionPersist(Rows(…) [, inputs])``: by default all fields are columns."""
    call = "partitionPersist"
    seen = at.fields if inputs is None else _check_inputs(call, at, inputs)
    rows = cast("Rows", spec.stateFactory)
    name = name or spec.name or rows.name
    spec = replace(spec, stateFactory=rows.of(seen.types))
    return at.add(
        StateUpdateNode,
        state=at.builder.state(call, spec, name, ()),
        inputs=seen,
        updater=RowWriter(rows.target),
        outputs=Fields(),
    )


def state_query(at: Position, state: StateNode, given: Given) -> StateQueryNode:
    """``stateQuery(state, [inputs,] function, outputs)``."""
    call = "stateQuery"
    inputs, operation, outputs = given
    function = as_instance(call, operation, QueryFunction)
    if outputs is None:
        what = f"{call}: no output fields for"
        advice = "Name the fields that it appends as the last argument."
        raise OperationTypeError(what, operation_name(function), (), advice)
    seen = _check_inputs(call, at, inputs)
    check_queryable(call, function, at.node, seen, state)
    return at.add(StateQueryNode, asks=state, inputs=seen, function=function, outputs=outputs)


def _check_inputs(call: str, at: Position, inputs: Fields | None) -> Fields:
    """The named input fields with their types; no fields if none are named."""
    return check_selection(call, inputs or Fields(), at.fields)
