"""What streams and grouped streams share: aggregates, alone and kept in a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import deepcopy
from typing import TYPE_CHECKING, Any, overload

from trident.arguments import as_instance, split_arguments
from trident.fields import Fields, FieldsLike
from trident.operations import Aggregator, CombinerAggregator, ReducerAggregator
from trident.plan.builder import Builder
from trident.plan.nodes import (
    AggregateNode,
    AnyAggregator,
    Node,
    PartitionAggregateNode,
    PartitionNode,
    StateDeclaration,
    StateUpdateNode,
)
from trident.plan.types import typed_outputs
from trident.plan.validate import check_aggregate_shape, check_new_fields, check_selection
from trident.state_updaters import (
    CombinerAggStateUpdater,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    ReducerAggStateUpdater,
)
from trident.states.state import StateLike
from trident.trident_state import TridentState

if TYPE_CHECKING:
    from trident.stream import Stream

StatefulAggregator = CombinerAggregator[Any] | ReducerAggregator[Any]


class Aggregatable(ABC):
    """A stream, or the groups of one."""

    def __init__(self, builder: Builder, node: Node, group: Fields | None = None) -> None:
        self._builder = builder
        self._node = node
        self._group = group

    @abstractmethod
    def _stream(self, node: Node) -> Stream:
        """A stream of this topology that ends in a node."""

    def getOutputFields(self) -> Fields:
        """The fields of the stream's tuples, with their types where they are known."""
        return self._node.fields

    @overload
    def aggregate(self, aggregator: AnyAggregator, outputs: FieldsLike, /) -> Stream: ...
    @overload
    def aggregate(
        self, inputs: FieldsLike, aggregator: AnyAggregator, outputs: FieldsLike, /
    ) -> Stream: ...
    def aggregate(self, *arguments: Any) -> Stream:
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
            gives nothing, another one a single tuple, the aggregate of nothing.

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
        aggregator, parts = self._aggregate("aggregate", arguments)
        return self._stream(self._builder.add(AggregateNode, aggregator=aggregator, **parts))

    def _partition_aggregate(self, arguments: tuple[Any, ...]) -> Node:
        aggregator, parts = self._aggregate("partitionAggregate", arguments)
        return self._builder.add(PartitionAggregateNode, aggregator=aggregator, **parts)

    def _aggregate(self, call: str, arguments: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
        inputs, given, outputs = split_arguments(call, arguments, most=2)
        kinds = (CombinerAggregator, ReducerAggregator, Aggregator)
        aggregator = as_instance(call, given, *kinds)
        return aggregator, {
            "parent": self._node,
            "group": self._group,
            "inputs": inputs or Fields(),
            "outputs": outputs or Fields(),
        }

    @overload
    def persistentAggregate(
        self,
        state: StateLike,
        aggregator: StatefulAggregator,
        outputs: FieldsLike,
        /,
        *,
        name: str | None = None,
    ) -> TridentState: ...
    @overload
    def persistentAggregate(
        self,
        state: StateLike,
        inputs: FieldsLike,
        aggregator: StatefulAggregator,
        outputs: FieldsLike,
        /,
        *,
        name: str | None = None,
    ) -> TridentState: ...
    def persistentAggregate(
        self, state: Any, /, *arguments: Any, name: str | None = None
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
        inputs, given, outputs = split_arguments(call, arguments, most=2)
        inputs, outputs = inputs or Fields(), outputs or Fields()
        declaration = self._builder.state(call, state, name, outputs)
        aggregator = as_instance(call, given, CombinerAggregator, ReducerAggregator)
        if isinstance(aggregator, CombinerAggregator):
            node = self._combined(declaration, aggregator, inputs, outputs)
        else:
            check_selection(call, inputs, self._node.fields)
            check_aggregate_shape(call, aggregator, inputs, outputs)
            check_new_fields(call, outputs, self._group or Fields())
            node = self._reduced(declaration, aggregator, inputs, outputs)
        return TridentState(self._builder, node)

    def _combined(
        self,
        state: StateDeclaration,
        combiner: CombinerAggregator[Any],
        inputs: Fields,
        outputs: Fields,
    ) -> StateUpdateNode:
        """Partial aggregates of the batch, each combined with what is stored."""
        partial = self._builder.add(
            AggregateNode,
            parent=self._node,
            group=self._group,
            inputs=inputs,
            aggregator=combiner,
            outputs=outputs,
        )
        own = _copy(combiner)
        updater = (
            CombinerAggStateUpdater(own)
            if self._group is None
            else MapCombinerAggStateUpdater(own, self._group, outputs.names[0])
        )
        return self._builder.add(
            StateUpdateNode,
            parent=partial,
            state=state,
            inputs=partial.fields,
            updater=updater,
            outputs=partial.fields,
            group=self._group,
        )

    def _reduced(
        self,
        state: StateDeclaration,
        reducer: ReducerAggregator[Any],
        inputs: Fields,
        outputs: Fields,
    ) -> StateUpdateNode:
        """The batch's tuples themselves, moved by key and reduced onto what is stored."""
        before = self._node.fields
        group, seen = self._group or Fields(), before.select(inputs)
        moved = self._builder.add(
            PartitionNode,
            parent=self._node,
            how="global" if self._group is None else "partitionBy",
            by=self._group,
        )
        updater = (
            ReducerAggStateUpdater(reducer)
            if self._group is None
            else MapReducerAggStateUpdater(reducer, group, seen)
        )
        return self._builder.add(
            StateUpdateNode,
            parent=moved,
            state=state,
            inputs=group + [name for name in inputs if name not in group],
            updater=updater,
            outputs=before.select(group) + typed_outputs(outputs, reducer.infer_types(seen)),
            group=self._group,
        )


def _copy(combiner: CombinerAggregator[Any]) -> CombinerAggregator[Any]:
    """A combiner for the update alone, as what one step prepares is no other's; the same one where
    it can't be copied."""
    try:
        return deepcopy(combiner)
    except Exception:
        return combiner
