"""A stream of tuples, and the steps that can follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from trident.arguments import (
    as_consumer,
    as_filter,
    as_flat_map,
    as_function,
    as_map,
    split_arguments,
)
from trident.callables import Native
from trident.errors import PlanError
from trident.fields import Fields, FieldsLike
from trident.grouped import GroupedStream
from trident.operations import (
    Consumer,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
)
from trident.plan.nodes import (
    AnyAggregator,
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    MapNode,
    NameNode,
    NativeNode,
    Node,
    PartitionNode,
    PeekNode,
    ProjectNode,
)
from trident.plan.validate import check_keys, check_selection
from trident.stateful import Stateful

Plain = Callable[..., Any]


class Stream(Stateful):
    """An immutable handle on a step; every call adds steps and gives a new handle.

    Fields are given as ``"a"``, ``"a, b long"``, ``["a", "b"]`` or `Fields`. Where an operation is
    due, an instance or a plain callable will do; plain callables get the values of the input
    fields, one argument each, and what they return is told at each method.

    Declaring computes nothing. Operations are pickled to where they run, and a batch may be tried
    again, so an operation may see the same tuple more than once.

    Every method raises `PlanError` when the call is wrong, naming what would be right.
    """

    def _stream(self, node: Node) -> Stream:
        return Stream(self._builder, node)

    def _step(self, kind: type[Node], **parts: Any) -> Stream:
        return Stream(self._builder, self._builder.add(kind, parent=self._node, **parts))

    @overload
    def each(
        self, inputs: FieldsLike, function: Function | Native | Plain, outputs: FieldsLike, /
    ) -> Stream: ...
    @overload
    def each(self, function: Function | Native | Plain, outputs: FieldsLike, /) -> Stream: ...
    @overload
    def each(self, inputs: FieldsLike, filter: Filter | Native | Plain, /) -> Stream: ...
    @overload
    def each(self, filter: Filter | Native | Plain, /) -> Stream: ...
    def each(self, *arguments: Any) -> Stream:
        """Append fields, or drop tuples: ``each([inputs,] function, outputs)``, ``each([inputs,]
        filter)``.

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

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("sentence string", 3))
        >>> stream.each("sentence", str.split, "word string").getOutputFields()
        Fields('sentence string, word string')
        """
        inputs, operation, outputs = split_arguments("each", arguments, most=2)
        if outputs is None:
            return self._filter("each", inputs, operation)
        function = as_function("each", operation, self._select("each", inputs))
        if isinstance(function, Native):
            return self._step(NativeNode, expression=function, inputs=inputs, outputs=outputs)
        return self._step(EachNode, inputs=inputs or Fields(), function=function, outputs=outputs)

    @overload
    def filter(self, filter: Filter | Native | Plain, /) -> Stream: ...
    @overload
    def filter(self, inputs: FieldsLike, filter: Filter | Native | Plain, /) -> Stream: ...
    def filter(self, *arguments: Any) -> Stream:
        """Keep some tuples: ``filter([inputs,] filter)``; without inputs it sees all fields.

        A plain callable returns a bool.
        """
        inputs, operation, _ = split_arguments("filter", arguments, most=1)
        return self._filter("filter", inputs, operation)

    def _filter(self, call: str, inputs: Fields | None, operation: object) -> Stream:
        seen = self._node.fields if inputs is None else self._select(call, inputs)
        filter = as_filter(call, operation, seen)
        if isinstance(filter, Native):
            return self._step(NativeNode, expression=filter, inputs=inputs, outputs=Fields())
        return self._step(FilterNode, inputs=seen, filter=filter)

    def _select(self, call: str, inputs: Fields | None) -> Fields:
        check_selection(call, inputs or Fields(), self._node.fields)
        return inputs or Fields()

    def map(self, function: MapFunction | Plain, outputs: FieldsLike | None = None) -> Stream:
        """Replace each tuple by one other; the function sees all fields.

        Parameters
        ----------
        function : MapFunction or callable
            A plain callable returns the new tuple; with one output field its value.
        outputs : fields, optional
            The new fields; without them names and types stay.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> stream = TridentTopology().newStream("s", FixedBatchSpout("word string", 3))
        >>> stream.map(str.upper).map(len, "length long").getOutputFields()
        Fields('length long')
        """
        fields = None if outputs is None else Fields.of(outputs)
        before = self._node.fields
        width = len(before if fields is None else fields)
        made = as_map("map", function, before, width)
        return self._step(MapNode, function=made, outputs=fields)

    def flatMap(
        self, function: FlatMapFunction | Plain, outputs: FieldsLike | None = None
    ) -> Stream:
        """Replace each tuple by any number of others; the function sees all fields.

        Parameters
        ----------
        function : FlatMapFunction or callable
            A plain callable returns an iterable of new tuples, or None for nothing; with one
            output field of their values.
        outputs : fields, optional
            The new fields; without them names and types stay.

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
        before = self._node.fields
        width = len(before if fields is None else fields)
        made = as_flat_map("flatMap", function, before, width)
        return self._step(FlatMapNode, function=made, outputs=fields)

    def peek(self, consumer: Consumer | Plain) -> Stream:
        """Show every tuple, all its fields, to a consumer, where and as often as it is made."""
        return self._step(PeekNode, consumer=as_consumer("peek", consumer, self._node.fields))

    def project(self, *keep: FieldsLike) -> Stream:
        """Keep these fields only, in this order: ``project("a, b")`` or ``project("a", "b")``."""
        return self._step(ProjectNode, keep=_together(keep))

    def groupBy(self, *fields: FieldsLike) -> GroupedStream:
        """See the stream by groups of equal values of these fields."""
        group = _together(fields)
        check_selection("groupBy", group, self._node.fields)
        if not group:
            raise PlanError("groupBy: no fields", "", (), "Without groups, use the stream itself.")
        check_keys("groupBy", self._node.fields.select(group))
        return GroupedStream(self._builder, self._node, Fields(*group.names))

    def partitionBy(self, *fields: FieldsLike) -> Stream:
        """Bring tuples with equal values of these fields into one partition."""
        return self._step(PartitionNode, how="partitionBy", by=_together(fields))

    def shuffle(self) -> Stream:
        """Spread tuples evenly over the partitions."""
        return self._step(PartitionNode, how="shuffle")

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

    def name(self, label: str) -> Stream:
        """Label the steps up to here in plans and progress."""
        if not isinstance(label, str) or not label:
            raise PlanError("name: no label is", repr(label), (), 'Write name("words").')
        return self._step(NameNode, label=label)

    def toStream(self) -> Stream:
        """This stream."""
        return self

    @overload
    def partitionAggregate(self, aggregator: AnyAggregator, outputs: FieldsLike, /) -> Stream: ...
    @overload
    def partitionAggregate(
        self, inputs: FieldsLike, aggregator: AnyAggregator, outputs: FieldsLike, /
    ) -> Stream: ...
    def partitionAggregate(self, *arguments: Any) -> Stream:
        """Aggregate each partition by itself, also one without tuples, and in a batch without any:
        ``partitionAggregate([inputs,] aggregator, outputs)``; only the outputs remain.
        """
        return self._stream(self._partition_aggregate(arguments))


setattr(Stream, "global", Stream.global_)


def _together(given: tuple[FieldsLike, ...]) -> Fields:
    """Fields given as one argument or as several."""
    return sum(map(Fields.of, given), Fields())
