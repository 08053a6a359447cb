"""What a topology is declared with: streams, streams by group, and states.

All three are immutable handles on a step of the plan: a call on one adds steps and gives another.
What the arguments of a call become in the plan is in `trident.plan.lowering`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Generic, Protocol, TypeVar, overload

from trident.backends.rows import Rows
from trident.backends.state_spec import StateLike, StateSpec
from trident.errors import OperationTypeError, PlanError, described
from trident.job.explain import state_line
from trident.job.plan_dict import state_dict
from trident.operations.absent_calls import Published
from trident.operations.callables import CallableConsumer, Native
from trident.operations.interfaces import (
    CombinerAggregator,
    Consumer,
    CustomStreamGrouping,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    QueryFunction,
    ReducerAggregator,
    StateUpdater,
)
from trident.operations.kept_tuples import Comparator, GreatestTuple, LeastTuple
from trident.operations.vectorised import Vectorised
from trident.plan import lowering, window_lowering
from trident.plan.arguments import (
    Given,
    as_instance,
    as_operation,
    read_arguments,
    read_each,
    read_inputs,
    take_first,
)
from trident.plan.builder import Builder, Position
from trident.plan.chain import Chain
from trident.plan.expiring import NEVER, Expiring
from trident.plan.nodes import (
    AggregateNode,
    AnyAggregator,
    HintNode,
    NameNode,
    NewValuesNode,
    Node,
    OnError,
    PartitionAggregateNode,
    PartitionNode,
    PeekNode,
    ProjectNode,
    StateNode,
    StaticStateNode,
    StepNode,
)
from trident.plan.step_checks import check_keys, check_selection
from trident.states.tracebacks import Briefly
from trident.tuples.fields import Fields, FieldsLike
from trident.windows.windows import BaseWindow, DurationLike

Plain = (
    Callable[[], Any]
    | Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[Concatenate[Any, Any, Any, Any, ...], Any]
)
"""A plain callable; type checkers find a lambda's parameters where their number is written out."""
StatefulAggregator = CombinerAggregator[Any] | ReducerAggregator[Any]


Handle = TypeVar("Handle", bound="_Steps[Any]")
Made = TypeVar("Made")


class _Aggregates(Published, Generic[Made]):
    """What a stream and a chain of aggregators share."""

    @overload
    def aggregate(self, aggregator: AnyAggregator, outputs: FieldsLike) -> Made: ...
    @overload
    def aggregate(
        self, inputs: FieldsLike, aggregator: AnyAggregator, outputs: FieldsLike
    ) -> Made: ...
    def aggregate(self, *arguments: Any, **named: Any) -> Made:
        """Aggregate each batch, or each group of it: ``aggregate([inputs,] aggregator, outputs)``.

        Parameters
        ----------
        inputs : fields, optional
            What the aggregator sees; without it an empty tuple.
        aggregator : CombinerAggregator, ReducerAggregator or Aggregator
            A combiner first combines within each partition, and only the result is moved.
        outputs : fields
            The output fields; one for a combiner or reducer.

        Returns
        -------
        Stream
            Of the group fields, if grouped, and the outputs. Of an empty batch, a grouped stream
            gives nothing, another one a single tuple, the aggregate of nothing. In a chain: the
            chain with this aggregator.

        Examples
        --------
        >>> from trident import Count, FixedBatchSpout, Sum, TridentTopology
        >>> spout = FixedBatchSpout("shop string, eur long", 9)
        >>> sales = TridentTopology().newStream("sales", spout)
        >>> sales.aggregate("eur", Sum(), "total").getOutputFields()
        Fields('total long')
        >>> sales.groupBy("shop").aggregate(Count(), "n").getOutputFields()
        Fields('shop string, n long')
        """
        with Briefly():
            return self._aggregate(read_arguments("aggregate", arguments, named, "aggregator"))

    @abstractmethod
    def _aggregate(self, given: Given) -> Made:
        """The same, of arguments that were read."""


class _PartitionAggregates(Published, Generic[Made]):
    """What a stream and a chain of aggregators of partitions share."""

    @overload
    def partitionAggregate(self, aggregator: AnyAggregator, outputs: FieldsLike) -> Made: ...
    @overload
    def partitionAggregate(
        self, inputs: FieldsLike, aggregator: AnyAggregator, outputs: FieldsLike
    ) -> Made: ...
    def partitionAggregate(self, *arguments: Any, **named: Any) -> Made:
        """Aggregate each partition by itself, also one without tuples, and in a batch without any:
        ``partitionAggregate([inputs,] aggregator, outputs)``; only the outputs remain.

        A stream of groups aggregates each group within each partition; the group fields remain
        too, and it keeps its groups.
        """
        call = "partitionAggregate"
        return self._partition_aggregate(read_arguments(call, arguments, named, "aggregator"))

    @abstractmethod
    def _partition_aggregate(self, given: Given) -> Made:
        """The same, of arguments that were read."""


class _Steps(_Aggregates["Stream"], _PartitionAggregates[Handle], Generic[Handle]):
    """The calls that a stream and a stream of groups share.

    A call that keeps the groups gives a handle of the same sort, `Handle`.
    """

    def __init__(self, builder: Builder, node: Node, group: Fields | None = None) -> None:
        self._builder = builder
        self._node = node
        self._group = group

    @property
    def _position(self) -> Position:
        """Where the next call adds its steps."""
        return Position(self._builder, self._node, self._group)

    def __repr__(self) -> str:
        fields = repr(self.getOutputFields()).removeprefix("Fields(").removesuffix(")")
        group = f", by {str(self._group)!r}" if self._group is not None else ""
        return f"{type(self).__name__}({fields}{group})"

    @abstractmethod
    def _after(self, node: Node) -> Handle:
        """The handle on a step that follows, with the same groups."""

    def _moved(self) -> Position:
        """The position behind which the tuples of a group are in one partition."""
        return self._position

    def _aggregate(self, given: Given) -> Stream:
        node = lowering.aggregate(AggregateNode, "aggregate", self._position, given)
        return Stream(self._builder, node)

    def _partition_aggregate(self, given: Given) -> Handle:
        kind, call = PartitionAggregateNode, "partitionAggregate"
        return self._after(lowering.aggregate(kind, call, self._position, given))

    def getOutputFields(self) -> Fields:
        """The fields of the stream's tuples, with their types where they are known."""
        return self._node.fields

    def name(self, label: str) -> Handle:
        """Label the steps up to here in plans and progress."""
        if not isinstance(label, str) or not label:
            what = f"name: a label can't be {label!r:.60}"
            raise PlanError(what, "", (), 'Write name("words").')
        return self._after(self._position.add(NameNode, label=label))

    @overload
    def each(
        self,
        inputs: FieldsLike,
        function: Function | Native | Plain,
        outputs: FieldsLike,
        *,
        on_error: OnError | None = None,
    ) -> Handle: ...
    @overload
    def each(
        self,
        function: Function | Native | Plain,
        outputs: FieldsLike,
        *,
        on_error: OnError | None = None,
    ) -> Handle: ...
    @overload
    def each(
        self,
        inputs: FieldsLike,
        filter: Filter | Native | Plain,
        *,
        on_error: OnError | None = None,
    ) -> Handle: ...
    @overload
    def each(
        self, filter: Filter | Native | Plain, *, on_error: OnError | None = None
    ) -> Handle: ...
    def each(self, *arguments: Any, on_error: OnError | None = None, **named: Any) -> Handle:
        """Append fields, or drop tuples: ``each([inputs,] function, outputs)``, ``each([inputs,]
        filter)``. A stream of groups keeps its groups.

        Parameters
        ----------
        inputs : fields, optional
            What the operation sees. Without them a function sees an empty tuple, a filter all
            fields.
        function : Function, callable or native
            Makes any number of tuples of one. A plain callable returns an iterable of values, or
            None for nothing: with one output field of plain values, where ``(v,)`` is ``v`` and a
            list is an array; with several of tuples or lists.
        filter : Filter, callable or native
            Says whether a tuple stays. A plain callable returns a bool.
        outputs : fields
            The fields the function appends, with types where they are not known otherwise.
        on_error : str, optional
            What becomes of a tuple with which the operation raises, or for which it returns a
            value of another type: ``"fail"`` stops the run, ``"skip"`` leaves the tuple out and
            counts it, ``"dead-letter"`` keeps it as well. By default what the start says.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("sentence string", 3))
        >>> stream.each("sentence", str.split, "word string").getOutputFields()
        Fields('sentence string, word string')
        >>> stream.each(inputs="sentence", filter=str.isascii).getOutputFields()
        Fields('sentence string')
        """
        with Briefly():
            given = read_each(arguments, named)
            return self._after(lowering.each(self._position, given, on_error))

    def chainedAgg(self) -> ChainedAggregatorDeclarer:
        """Begin a chain of aggregators over the same tuples, which ``chainEnd()`` ends.

        Returns
        -------
        ChainedAggregatorDeclarer
            Takes either calls of ``aggregate`` or calls of ``partitionAggregate``. At the end it is
            a stream of the group fields, if grouped, and of all outputs: every combination of the
            tuples that the aggregators emit; those of the last aggregator vary fastest. If one of
            them emits nothing there is no combination. If all are combiners, they combine within
            each partition first.

        Examples
        --------
        >>> from trident import Count, FixedBatchSpout, Sum, TridentTopology
        >>> spout = FixedBatchSpout("shop string, eur long", 9)
        >>> shops = TridentTopology().newStream("sales", spout).groupBy("shop")
        >>> chain = shops.chainedAgg().aggregate(Count(), "n").aggregate("eur", Sum(), "total")
        >>> chain.chainEnd().getOutputFields()
        Fields('shop string, n long, total long')
        """
        return ChainedAggregatorDeclarer(Chain(self._position))

    @overload
    def persistentAggregate(
        self,
        state: StateLike,
        aggregator: StatefulAggregator,
        outputs: FieldsLike,
        *,
        name: str | None = None,
        expire_after: DurationLike | None = None,
        time_field: str | None = None,
    ) -> TridentState: ...
    @overload
    def persistentAggregate(
        self,
        state: StateLike,
        inputs: FieldsLike,
        aggregator: StatefulAggregator,
        outputs: FieldsLike,
        *,
        name: str | None = None,
        expire_after: DurationLike | None = None,
        time_field: str | None = None,
    ) -> TridentState: ...
    def persistentAggregate(
        self,
        *arguments: Any,
        name: str | None = None,
        expire_after: DurationLike | None = None,
        time_field: str | None = None,
        **named: Any,
    ) -> TridentState:
        """Keep an aggregate of all batches: ``persistentAggregate(state, [inputs,] aggregator,
        outputs)``.

        Parameters
        ----------
        state : StateFactory, its URL, or StateSpec
            Makes the state: a map when grouped, which it keys by the group fields, else a single
            value.
        inputs : fields, optional
            What the aggregator sees; without it an empty tuple.
        aggregator : CombinerAggregator or ReducerAggregator
            Aggregates onto what is stored.
        outputs : fields
            The one field of the new value.
        name : str, optional
            The state's name, unique in the topology; by default the output field.
        expire_after : timedelta or Duration, optional
            After what time without an update an entry is absent, for batches and queries; a sweep
            removes it from the store, some entries in each batch. Takes an opaque map.
        time_field : str, optional
            The field of tuples with the time that counts: milliseconds, or timestamps. It has come
            as far as the latest that a batch of the group has committed. Without it the time of
            batches counts.

        Returns
        -------
        TridentState
            To be queried; its new values are the group fields and the output. A batch without
            tuples combines a combiner's zero with an ungrouped value, which exists from then on;
            it reduces nothing onto any.

        Examples
        --------
        >>> from trident import FixedBatchSpout, MemoryMapState, Sum, TridentTopology
        >>> spout = FixedBatchSpout("shop string, eur long", 9)
        >>> sales = TridentTopology().newStream("sales", spout)
        >>> shops = sales.groupBy("shop").persistentAggregate(
        ...     MemoryMapState.Factory(), "eur", Sum(), "turnover")
        >>> shops.name, shops.newValuesStream().getOutputFields()
        ('turnover', Fields('shop string, turnover long'))
        """
        call = "persistentAggregate"
        [state], arguments, named = take_first(call, ["state"], arguments, named)
        check_not_updated(call, state)
        expiring = Expiring(expire_after, time_field)
        with Briefly():
            given = read_arguments(call, arguments, named, "aggregator")
            node = lowering.persistent_aggregate(self._position, state, given, name, expiring)
        return TridentState(self._builder, node)

    @overload
    def stateQuery(
        self, state: TridentState, function: QueryFunction[Any, Any], outputs: FieldsLike
    ) -> Stream: ...
    @overload
    def stateQuery(
        self,
        state: TridentState,
        inputs: FieldsLike,
        function: QueryFunction[Any, Any],
        outputs: FieldsLike,
    ) -> Stream: ...
    def stateQuery(self, *arguments: Any, **named: Any) -> Stream:
        """Append what a state holds: ``stateQuery(state, [inputs,] function, outputs)``.

        Inside a batch an opaque state is read as of the batch before; a DRPC query reads
        committed batches only. Of a stream of groups, the tuples of a group are brought into one
        partition before.

        Parameters
        ----------
        state : TridentState
            What ``persistentAggregate``, ``partitionPersist`` or ``newStaticState`` gave.
        inputs : fields, optional
            What the query sees, for `MapGet` the key; without it an empty tuple.
        function : QueryFunction
            Looks up all tuples of a partition at once.
        outputs : fields
            The fields it appends.

        Raises
        ------
        PlanError
            For a field that isn't there or isn't new, a query that the state can't answer, and a
            key of another type than the state's, as far as both are known: such a key is never
            found. The message has the conversion to write.

        Examples
        --------
        >>> from trident import MapGet, MemoryMapState, TridentTopology
        >>> topology = TridentTopology()
        >>> known = topology.newStaticState(MemoryMapState.Factory("known"), name="known")
        >>> asked = topology.newDRPCStream("ask").stateQuery(known, "args", MapGet(), "found long")
        >>> asked.getOutputFields()
        Fields('args string, found long')
        """
        [state], arguments, named = take_first("stateQuery", ["state"], arguments, named)
        if not isinstance(state, TridentState) or state._builder is not self._builder:
            what = "stateQuery: expected a state of this topology, found"
            advice = "Pass what persistentAggregate() or newStaticState(factory) gave."
            raise OperationTypeError(what, type(state).__name__, (), advice)
        with Briefly(), self._builder.together():
            given = read_arguments("stateQuery", arguments, named, "function")
            node = lowering.state_query(self._moved(), state._node, given)
        return Stream(self._builder, node)

    @overload
    def partitionPersist(
        self, state: Rows | StateSpec, inputs: FieldsLike = ..., *, name: str | None = None
    ) -> TridentState: ...
    @overload
    def partitionPersist(
        self,
        state: StateLike,
        updater: StateUpdater[Any],
        outputs: FieldsLike = ...,
        *,
        name: str | None = None,
        expire_after: DurationLike | None = None,
        time_field: str | None = None,
    ) -> TridentState: ...
    @overload
    def partitionPersist(
        self,
        state: StateLike,
        inputs: FieldsLike,
        updater: StateUpdater[Any],
        outputs: FieldsLike = ...,
        *,
        name: str | None = None,
        expire_after: DurationLike | None = None,
        time_field: str | None = None,
    ) -> TridentState: ...
    def partitionPersist(
        self,
        *arguments: Any,
        name: str | None = None,
        expire_after: DurationLike | None = None,
        time_field: str | None = None,
        **named: Any,
    ) -> TridentState:
        """Write tuples to a state: ``partitionPersist(state, [inputs,] updater [, outputs])``.

        To a table of rows: ``partitionPersist(Rows(…) [, inputs])``, by default all fields.

        It runs in one partition, unless ``partitionBy`` or ``groupBy`` stands directly before it
        and says which tuples belong to one key.

        Parameters
        ----------
        state : StateFactory, its URL, or StateSpec
            Makes the state.
        inputs : fields, optional
            What the updater sees; without it empty tuples.
        updater : StateUpdater
            Writes all tuples of a batch and partition at once.
        outputs : fields, optional
            What it emits, for ``newValuesStream``.
        name : str, optional
            The state's name, unique in the topology; by default the outputs, else ``"state"``.
        expire_after : timedelta or Duration, optional
            After what time without an update an entry is absent, as of ``persistentAggregate``;
            unless the updater returns a `KeepUntil`.
        time_field : str, optional
            The field of tuples with the time that counts: for all that the updater writes, the
            latest one that it is called with.
        """
        call = "partitionPersist"
        [state], arguments, named = take_first(call, ["state"], arguments, named)
        check_not_updated(call, state)
        expiring = Expiring(expire_after, time_field)
        with Briefly(), self._builder.together():
            spec = StateSpec(state) if isinstance(state, Rows) else state
            to_rows = isinstance(spec, StateSpec) and isinstance(spec.stateFactory, Rows)
            if to_rows and expiring == NEVER:
                inputs = read_inputs(call, arguments, named)
                node = lowering.persist_rows(self._moved(), spec, inputs, name)
                return TridentState(self._builder, node)
            given = read_arguments(call, arguments, named, "updater")
            node = lowering.partition_persist(self._moved(), state, given, name, expiring)
        return TridentState(self._builder, node)

    @overload
    def window(
        self,
        config: BaseWindow,
        store: StateLike,
        aggregator: AnyAggregator,
        outputs: FieldsLike,
        *,
        name: str | None = None,
    ) -> WindowedStream: ...
    @overload
    def window(
        self,
        config: BaseWindow,
        store: StateLike,
        inputs: FieldsLike,
        aggregator: AnyAggregator,
        outputs: FieldsLike,
        *,
        name: str | None = None,
    ) -> WindowedStream: ...
    def window(self, *arguments: Any, name: str | None = None, **named: Any) -> WindowedStream:
        """Aggregate windows: ``window(config, store, [inputs,] aggregator, outputs)``.

        Windows are of the whole stream, or of each group by itself, not of a partition. What is
        open is kept in the store, as any state: it survives a restart, and a batch that is tried
        again counts once. A window is emitted in the batch that ends it.

        Parameters
        ----------
        config : BaseWindow
            Which windows: `TumblingCountWindow`, `SlidingCountWindow`, `TumblingDurationWindow`,
            `SlidingDurationWindow` or `SessionWindow`.
        store : StateFactory, its URL, or StateSpec
            Makes an opaque map, which no other state shares.
        inputs : fields, optional
            What the aggregator sees; without it an empty tuple.
        aggregator : CombinerAggregator, ReducerAggregator or Aggregator
            Of a combiner an aggregate is kept for each part of a window; of a reducer too, where
            windows tumble. For others all tuples of open windows are kept.
        outputs : fields
            The output fields; one for a combiner or reducer.
        name : str, optional
            The state's name, unique in the topology; by default the outputs.

        Returns
        -------
        WindowedStream
            Of the group fields, if grouped, the outputs, and for windows by a field with times
            ``windowStart`` and ``windowEnd``.

        Examples
        --------
        >>> from trident import FixedBatchSpout, MemoryMapState, Sum, TridentTopology
        >>> from trident import TumblingCountWindow
        >>> spout = FixedBatchSpout("shop string, eur long", 9)
        >>> sales = TridentTopology().newStream("sales", spout)
        >>> sales.groupBy("shop").window(
        ...     TumblingCountWindow.of(100), MemoryMapState.Factory(), "eur", Sum(), "hundred"
        ... ).getOutputFields()
        Fields('shop string, hundred long')
        """
        first = ["config", "store"]
        (config, store), arguments, named = take_first("window", first, arguments, named)
        return self._windowed(config, store, arguments, name, named)

    def _windowed(
        self,
        config: BaseWindow,
        store: object,
        arguments: Sequence[Any],
        name: str | None,
        named: Mapping[str, Any],
    ) -> WindowedStream:
        check_not_updated("window", store)
        with Briefly():
            given = read_arguments("window", arguments, named, "aggregator")
            node = window_lowering.window(self._position, config, store, given, name)
        return WindowedStream(self._builder, node)

    @overload
    def tumblingWindow(
        self,
        length: int | DurationLike,
        store: StateLike,
        aggregator: AnyAggregator,
        outputs: FieldsLike,
        *,
        name: str | None = None,
    ) -> WindowedStream: ...
    @overload
    def tumblingWindow(
        self,
        length: int | DurationLike,
        store: StateLike,
        inputs: FieldsLike,
        aggregator: AnyAggregator,
        outputs: FieldsLike,
        *,
        name: str | None = None,
    ) -> WindowedStream: ...
    def tumblingWindow(
        self, *arguments: Any, name: str | None = None, **named: Any
    ) -> WindowedStream:
        """Aggregate windows of a number of tuples, or of a time: ``tumblingWindow(length, store,
        [inputs,] aggregator, outputs)``; see `window`.

        Examples
        --------
        >>> from trident import Count, FixedBatchSpout, MemoryMapState, TridentTopology
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("word string", 3))
        >>> stream.tumblingWindow(100, MemoryMapState.Factory(), Count(), "n").getOutputFields()
        Fields('n long')
        """
        first = ["length", "store"]
        (length, store), arguments, named = take_first("tumblingWindow", first, arguments, named)
        return self._windowed(window_lowering.tumbling(length), store, arguments, name, named)

    @overload
    def slidingWindow(
        self,
        length: int | DurationLike,
        slide: int | DurationLike,
        store: StateLike,
        aggregator: AnyAggregator,
        outputs: FieldsLike,
        *,
        name: str | None = None,
    ) -> WindowedStream: ...
    @overload
    def slidingWindow(
        self,
        length: int | DurationLike,
        slide: int | DurationLike,
        store: StateLike,
        inputs: FieldsLike,
        aggregator: AnyAggregator,
        outputs: FieldsLike,
        *,
        name: str | None = None,
    ) -> WindowedStream: ...
    def slidingWindow(
        self, *arguments: Any, name: str | None = None, **named: Any
    ) -> WindowedStream:
        """Aggregate windows of a number of tuples, or of a time, that overlap:
        ``slidingWindow(length, slide, store, [inputs,] aggregator, outputs)``; see `window`.
        """
        first = ["length", "slide", "store"]
        taken, arguments, named = take_first("slidingWindow", first, arguments, named)
        length, slide, store = taken
        config = window_lowering.sliding(length, slide)
        return self._windowed(config, store, arguments, name, named)


class Assembly(Protocol):
    """Several steps that are declared together; any object with this method is one."""

    def apply(self, stream: Stream, /) -> Stream:
        """Add steps to a stream, and return the last; called while the topology is declared."""


class Stream(_Steps["Stream"]):
    """An immutable handle on a step; every call adds steps and gives a new handle.

    Fields are given as ``"a"``, ``"a, b long"``, ``["a", "b"]`` or `Fields`. Where an operation is
    due, an instance or a plain callable will do; plain callables get the values of the input
    fields, one argument each; each method says what they return.

    Declaring computes nothing. Operations are pickled to where they run, and a batch may be tried
    again, so an operation may see the same tuple more than once.

    Every method raises `PlanError` when the call is wrong, naming what would be right.
    """

    def _after(self, node: Node) -> Stream:
        return Stream(self._builder, node)

    def _step(self, kind: type[Node], **parts: Any) -> Stream:
        return Stream(self._builder, self._position.add(kind, **parts))

    def withColumn(
        self,
        name: FieldsLike,
        function: Native | Plain,
        inputs: FieldsLike | None = None,
        *,
        on_error: OnError | None = None,
    ) -> Stream:
        """Append one field, whose value a plain function returns.

        Parameters
        ----------
        name : fields
            The new field, with its type where the function has no annotation: ``"doubled long"``.
        function : callable or native
            Returns the value, one for each tuple; a list is an array. `each` is for any number of
            values, `map` for a new tuple.
        inputs : fields, optional
            What the function is called with, one argument each; by default all fields.
        on_error : str, optional
            As for `each`.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("word string, n long", 3))
        >>> stream.withColumn("doubled long", lambda n: 2 * n, "n").getOutputFields()
        Fields('word string, n long, doubled long')
        """
        with Briefly():
            made = lowering.with_column(self._position, name, function, inputs, on_error)
        return Stream(self._builder, made)

    @overload
    def filter(
        self, filter: Filter | Native | Plain, *, on_error: OnError | None = None
    ) -> Stream: ...
    @overload
    def filter(
        self,
        inputs: FieldsLike,
        filter: Filter | Native | Plain,
        *,
        on_error: OnError | None = None,
    ) -> Stream: ...
    def filter(self, *arguments: Any, on_error: OnError | None = None, **named: Any) -> Stream:
        """Keep some tuples: ``filter([inputs,] filter)``; without inputs it sees all fields.

        A plain callable returns a bool. `on_error` is as for `each`.
        """
        with Briefly():
            given = read_arguments("filter", arguments, named, "filter", outputs=False)
            return Stream(
                self._builder, lowering.filter_tuples("filter", self._position, given, on_error)
            )

    def map(
        self,
        function: MapFunction | Plain,
        outputs: FieldsLike | None = None,
        *,
        on_error: OnError | None = None,
    ) -> Stream:
        """Replace each tuple by one other; the function sees all fields.

        Parameters
        ----------
        function : MapFunction or callable
            A plain callable returns the new tuple; with one output field its value.
        outputs : fields, optional
            The new fields; without them names and types stay.
        on_error : str, optional
            As for `each`.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("word string", 3))
        >>> stream.map(str.upper).map(len, "length long").getOutputFields()
        Fields('length long')
        """
        fields = None if outputs is None else Fields.of(outputs)
        with Briefly():
            node = lowering.map_each(self._position, function, fields, on_error)
        return Stream(self._builder, node)

    def flatMap(
        self,
        function: FlatMapFunction | Vectorised | Plain,
        outputs: FieldsLike | None = None,
        *,
        on_error: OnError | None = None,
    ) -> Stream:
        """Replace each tuple by any number of others; the function sees all fields.

        Parameters
        ----------
        function : FlatMapFunction, callable or vectorised
            A plain callable returns an iterable of new tuples, or None for nothing; with one
            output field of their values. What `vectorised` makes replaces whole record batches.
        outputs : fields, optional
            The new fields; without them names and types stay.
        on_error : str, optional
            As for `each`. A function of record batches says which rows are bad by raising
            `trident.errors.BadRowsError`; any other error of it stops the run.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("id long, line string", 3))
        >>> def words(id: int, line: str) -> list[tuple[int, str]]:
        ...     return [(id, word) for word in line.split()]
        >>> stream.flatMap(words, "id, word").getOutputFields()
        Fields('id long, word string')
        """
        fields = None if outputs is None else Fields.of(outputs)
        with Briefly():
            node = lowering.flat_map(self._position, function, fields, on_error)
        return Stream(self._builder, node)

    def peek(self, consumer: Consumer | Plain) -> Stream:
        """Show every tuple, with all its fields, to a consumer, each time that it is made."""
        fields = self._node.fields
        known = as_operation("peek", consumer, CallableConsumer, fields)
        return self._step(PeekNode, inputs=fields, consumer=known)

    def project(self, *keep: FieldsLike) -> Stream:
        """Keep these fields only, in this order: ``project("a, b")`` or ``project("a", "b")``."""
        return self._step(ProjectNode, keep=_joined_fields(keep))

    def groupBy(self, *fields: FieldsLike) -> GroupedStream:
        """See the stream by groups of equal values of these fields."""
        group = _joined_fields(fields)
        check_keys("groupBy", check_selection("groupBy", group, self._node.fields))
        if not group:
            raise PlanError("groupBy: no fields", "", (), "Without groups, use the stream itself.")
        return GroupedStream(self._builder, self._node, Fields(*group.names))

    def partitionBy(self, *fields: FieldsLike) -> Stream:
        """Bring tuples with equal values of these fields into one partition.

        It is partition ``crc32(encoded key) mod partitions``, with the key encoded as stores keep
        it: the same on both engines, and after a restart.
        """
        return self._step(PartitionNode, how="partitionBy", by=_joined_fields(fields))

    def partition(self, grouping: CustomStreamGrouping) -> Stream:
        """Bring each tuple into the partitions that a grouping of your own chooses.

        Parameters
        ----------
        grouping : CustomStreamGrouping
            Chooses, for each tuple with all its fields, where the tuples are before they move. A
            partition that isn't there stops the run.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> from trident.storm import CustomStreamGrouping
        >>> class ByLength(CustomStreamGrouping):
        ...     def chooseTasks(self, targetTasks, values):
        ...         return [targetTasks[len(values["word"]) % len(targetTasks)]]
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("word string", 3))
        >>> stream.partition(ByLength()).parallelismHint(4).getOutputFields()
        Fields('word string')
        """
        return self._step(
            PartitionNode,
            how="partition",
            grouping=as_instance("partition", grouping, CustomStreamGrouping),
        )

    def shuffle(self) -> Stream:
        """Spread tuples evenly over the partitions."""
        return self._step(PartitionNode, how="shuffle")

    def localOrShuffle(self) -> Stream:
        """Leave tuples where they are if there are as many partitions as before, else spread
        them evenly."""
        return self._step(PartitionNode, how="localOrShuffle")

    def identityPartition(self) -> Stream:
        """Leave every tuple in its partition.

        That is what all steps do which move no tuples, so it adds no step: what follows has the
        partitions of what went before.
        """
        return self

    def global_(self) -> Stream:
        """Bring all tuples of all batches into the first partition.

        Published as ``global``, which Python reserves: ``getattr(stream, "global")()``.
        """
        return self._step(PartitionNode, how="global")

    def batchGlobal(self) -> Stream:
        """Bring all tuples of a batch into one partition."""
        return self._step(PartitionNode, how="batchGlobal")

    def broadcast(self) -> Stream:
        """Copy every tuple into every partition."""
        return self._step(PartitionNode, how="broadcast")

    def parallelismHint(self, parallelism: int) -> Stream:
        """Use this many partitions from the last exchange, or the source, up to here."""
        return self._step(HintNode, parallelism=parallelism)

    def getName(self) -> str | None:
        """The nearest label that `name` gave to these steps, if any."""
        node: Node = self._node
        while isinstance(node, StepNode):
            if isinstance(node, NameNode):
                return node.label
            node = node.parent
        return None

    def toStream(self) -> Stream:
        """This stream."""
        return self

    def applyAssembly(self, assembly: Assembly | Callable[[Stream], Stream]) -> Stream:
        """What an assembly makes of this stream: several steps under one name.

        Parameters
        ----------
        assembly : Assembly or callable
            Adds steps to a stream and returns the last; called at once.

        Examples
        --------
        >>> from trident import FirstN, FixedBatchSpout, TridentTopology
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("word string, n long", 3))
        >>> stream.applyAssembly(FirstN(10, "n", reverse=True)).getOutputFields()
        Fields('word string, n long')
        """
        apply = getattr(assembly, "apply", assembly)
        if isinstance(assembly, type) or not callable(apply):
            what = "applyAssembly: expected an assembly, found"
            advice = "Pass an object with apply(stream), or a function of a stream."
            given = assembly.__name__ if isinstance(assembly, type) else None
            found = f"the class {given}" if given else described(assembly)
            raise OperationTypeError(what, found, (), advice)
        with self._builder.together():
            made = apply(self)
            if not isinstance(made, Stream) or made._builder is not self._builder:
                what = "applyAssembly: expected a stream of this topology from the assembly, found"
                raise OperationTypeError(what, type(made).__name__, (), "Return the last step.")
        return made

    def min(self, comparator: Comparator) -> Stream:
        """Keep the least tuple of each partition and batch: ``min(comparator)``.

        Write ``.global_()`` before it for the least of all. A partition without tuples gives
        nothing; of several that tie the last one stays.

        Parameters
        ----------
        comparator : callable
            Is handed two tuples and returns a number: below 0 where the first one is less, above 0
            where it is greater, else 0. Runs where the tuples are, any number of times; it must
            pickle.
        """
        node = lowering.min_or_max(LeastTuple, self._position, comparator)
        return Stream(self._builder, node)

    def max(self, comparator: Comparator) -> Stream:
        """Keep the greatest tuple of each partition and batch; see `min`."""
        node = lowering.min_or_max(GreatestTuple, self._position, comparator)
        return Stream(self._builder, node)

    def minBy(self, field: str, comparator: Comparator | None = None) -> Stream:
        """Keep, of each partition and batch, the whole tuple with the least value of a field.

        Write ``.global_()`` before it for the least of all. Null counts for nothing, NaN is
        greater than any number; a partition without other values gives nothing, where Trident
        gives a broken tuple. Of several that tie the last one stays.

        Parameters
        ----------
        field : str
            The field.
        comparator : callable, optional
            Is handed two of its values; see `min`. By default their natural order.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("word string, n long", 3))
        >>> stream.global_().minBy("n").getOutputFields()
        Fields('word string, n long')
        """
        made = lowering.min_or_max_by(LeastTuple, self._position, field, comparator)
        return Stream(self._builder, made)

    def maxBy(self, field: str, comparator: Comparator | None = None) -> Stream:
        """Keep, of each partition and batch, the whole tuple with the greatest value of a field;
        see `minBy`."""
        made = lowering.min_or_max_by(GreatestTuple, self._position, field, comparator)
        return Stream(self._builder, made)


setattr(Stream, "global", Stream.global_)


class WindowedStream(Stream):
    """What windows come to, as a stream: a tuple for each, or what its aggregator emits."""

    _node: NewValuesNode

    def lateStream(self) -> Stream:
        """The tuples that came too late for all windows, as they were before these.

        The watermark of the batch before decides whether a tuple is late.

        Raises
        ------
        PlanError
            Where nothing is late: for windows by count, and by the time of batches.

        Examples
        --------
        >>> from trident import Count, Duration, FixedBatchSpout, MemoryMapState, TridentTopology
        >>> from trident import TumblingDurationWindow
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("word string, at long", 3))
        >>> minutes = TumblingDurationWindow.of(Duration.minutes(1)).withTimestampField("at")
        >>> counts = stream.groupBy("word").window(minutes, MemoryMapState.Factory(), Count(), "n")
        >>> counts.getOutputFields()
        Fields('word string, n long, windowStart long, windowEnd long')
        >>> counts.lateStream().getOutputFields()
        Fields('word string, at long')
        """
        return Stream(self._builder, window_lowering.late_stream(self._builder, self._node))

    def persistWindows(
        self,
        store: StateLike,
        /,
        *,
        name: str | None = None,
        expire_after: DurationLike | None = None,
    ) -> TridentState:
        """Keep a table of the windows that have ended: a value for each key, start and end.

        A window that is emitted again takes the place of its entry, and what is taken back is
        removed, so that the table has each tuple once, however late it came.

        Parameters
        ----------
        store : StateFactory, its URL, or StateSpec
            Makes a map state. Its keys are the group fields, ``windowStart`` and ``windowEnd``.
        name : str, optional
            The state's name, unique in the topology; by default ``"windows"``.
        expire_after : timedelta or Duration, optional
            How long after its end a window stays in the table, by the latest end of any window in
            it. Takes an opaque map.

        Raises
        ------
        PlanError
            For windows without a field with times, and for sessions with a lateness that aren't
            made ``withRetractions()``.
        OperationTypeError
            For windows of an `Aggregator`, which emits any number of tuples, and for a store that
            makes no map state.

        Examples
        --------
        >>> from trident import Count, Duration, FixedBatchSpout, MemoryMapState, SessionWindow
        >>> from trident import TridentTopology
        >>> clicks = TridentTopology().newStream("c", FixedBatchSpout("user string, at long", 3))
        >>> gap, late = Duration.minutes(30), Duration.hours(1)
        >>> visits = SessionWindow.of(gap).withTimestampField("at").withLateness(late)
        >>> counts = clicks.groupBy("user").window(
        ...     visits.withRetractions(), MemoryMapState.Factory(), Count(), "clicks")
        >>> counts.persistWindows(MemoryMapState.Factory(), name="visits").name
        'visits'
        """
        node = window_lowering.window_table(self._builder, self._node, store, name, expire_after)
        return TridentState(self._builder, node)


class GroupedStream(_Steps["GroupedStream"]):
    """What ``groupBy`` gives; nothing is moved before an aggregate, a state or a query needs it.

    Two keys are one group when they are equal in encoded form: ``1``, ``True`` and ``1.0``
    differ, ``-0.0`` is ``0.0``, and null is a key like any other.
    """

    _group: Fields

    def getGroupFields(self) -> Fields:
        """The fields that make a group."""
        return self._node.fields.select(self._group)

    def toStream(self) -> Stream:
        """The stream without its groups."""
        return Stream(self._builder, self._node)

    def _after(self, node: Node) -> GroupedStream:
        return GroupedStream(self._builder, node, self._group)

    def _moved(self) -> Position:
        moved = self._position.add(PartitionNode, how="partitionBy", by=self._group)
        return Position(self._builder, moved)


class _Chained(Published):
    """A chain of aggregators; immutable."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain


class _AggregatesNext(_Chained, _Aggregates["ChainedFullAggregatorDeclarer"]):
    def _aggregate(self, given: Given) -> ChainedFullAggregatorDeclarer:
        return ChainedFullAggregatorDeclarer(self._chain.then("aggregate", given))


class _PartitionAggregatesNext(
    _Chained, _PartitionAggregates["ChainedPartitionAggregatorDeclarer"]
):
    def _partition_aggregate(self, given: Given) -> ChainedPartitionAggregatorDeclarer:
        chain = self._chain.then("partitionAggregate", given)
        return ChainedPartitionAggregatorDeclarer(chain)


class ChainedAggregatorDeclarer(_AggregatesNext, _PartitionAggregatesNext):
    """What ``chainedAgg()`` gives: a chain of aggregators without any yet; immutable."""


class ChainedFullAggregatorDeclarer(_AggregatesNext):
    """A chain of aggregators of each batch; immutable."""

    def chainEnd(self) -> Stream:
        """The stream of the group fields, if grouped, and of all outputs."""
        return Stream(self._chain.at.builder, self._chain.end(AggregateNode))


class ChainedPartitionAggregatorDeclarer(_PartitionAggregatesNext):
    """A chain of aggregators of each partition; immutable."""

    def chainEnd(self) -> Stream:
        """The stream of the group fields, if grouped, and of all outputs."""
        return Stream(self._chain.at.builder, self._chain.end(PartitionAggregateNode))


class TridentState(Published):
    """A handle on a state, made by the call that declares the state.

    Attributes
    ----------
    name : str
        The state's name, unique in the topology.
    """

    def __init__(self, builder: Builder, node: StateNode) -> None:
        self._builder = builder
        self._node = node

    @property
    def name(self) -> str:
        return self._node.state.name

    def __repr__(self) -> str:
        return f"TridentState({self.name!r}, {self._node.state.factory.label})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the guarantee, the place, the calls that a batch costs."""
        from trident.page.notebook import state_html

        return state_html(state_dict(self._builder.plan(), self._node))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The same, and its line of the explanation where only text can be shown."""
        return {"text/plain": state_line(self._node.state), "text/html": self._repr_html_()}

    def newValuesStream(self) -> Stream:
        """What the updater emits, as a stream: the group fields and the new values.

        Raises
        ------
        PlanError
            For a static state, which is never updated, and where the updater has no outputs.

        Examples
        --------
        >>> from trident import Count, FixedBatchSpout, MemoryMapState, TridentTopology
        >>> topology = TridentTopology()
        >>> words = topology.newStream("words", FixedBatchSpout("word string", 3, ["cat"]))
        >>> counts = words.groupBy("word").persistentAggregate(
        ...     MemoryMapState.Factory(), Count(), "count")
        >>> counts.newValuesStream().getOutputFields()
        Fields('word string, count long')
        """
        if isinstance(self._node, StaticStateNode):
            advice = "Only a state that this topology updates has new values."
            raise PlanError("newValuesStream: nothing updates the state", self.name, (), advice)
        if not self._node.fields:
            advice = "Name the fields it emits as the last argument of partitionPersist()."
            raise PlanError(
                "newValuesStream: the updater has no output fields for", self.name, (), advice
            )
        return Stream(self._builder, self._builder.add(NewValuesNode, parents=(self._node,)))

    def parallelismHint(self, parallelism: int) -> TridentState:
        """Update the state in this many partitions.

        Raises
        ------
        PlanError
            When it is no whole number from 1, or the state is static.
        """
        if isinstance(self._node, StaticStateNode):
            advice = "Hint the stream that queries it."
            raise PlanError("parallelismHint: nothing updates the state", self.name, (), advice)
        self._builder.add(HintNode, parents=(self._node,), parallelism=parallelism)
        return self


def check_not_updated(call: str, state: object) -> None:
    """Refuse a state that another call updates: a state has one update."""
    if isinstance(state, TridentState):
        what = f"{call}: expected a StateFactory, its URL or a StateSpec, found"
        advice = "A state has one update; merge() the streams first and persist once."
        raise OperationTypeError(what, "a state that is updated already", (), advice)


def _joined_fields(given: tuple[FieldsLike, ...]) -> Fields:
    """Return fields that are given as one argument or as several."""
    return sum(map(Fields.of, given), Fields())
