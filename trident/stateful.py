"""How a stream meets state: it queries one, or writes its tuples to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from trident.aggregatable import Aggregatable
from trident.arguments import as_instance, split_arguments
from trident.errors import OperationTypeError
from trident.fields import Fields, FieldsLike
from trident.operations import QueryFunction, StateUpdater
from trident.plan.nodes import StateQueryNode, StateUpdateNode
from trident.plan.queries import check_queryable
from trident.plan.types import typed_outputs
from trident.plan.validate import check_selection
from trident.rows import operation_name
from trident.states.state import StateLike
from trident.trident_state import TridentState

if TYPE_CHECKING:
    from trident.stream import Stream


class Stateful(Aggregatable):
    """A stream that may query and update states."""

    @overload
    def stateQuery(
        self, state: TridentState, function: QueryFunction[Any, Any], outputs: FieldsLike, /
    ) -> Stream: ...
    @overload
    def stateQuery(
        self,
        state: TridentState,
        inputs: FieldsLike,
        function: QueryFunction[Any, Any],
        outputs: FieldsLike,
        /,
    ) -> Stream: ...
    def stateQuery(self, state: TridentState, /, *arguments: Any) -> Stream:
        """Append what a state holds: ``stateQuery(state, [inputs,] function, outputs)``.

        Inside a batch an opaque state is read as of the batch before; a DRPC query reads
        committed batches only.

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
        call = "stateQuery"
        inputs, given, outputs = split_arguments(call, arguments, most=2)
        function = as_instance(call, given, QueryFunction)
        if not isinstance(state, TridentState) or state._builder is not self._builder:
            what = f"{call}: a state of this topology is due, found"
            advice = "Pass what persistentAggregate() or newStaticState(factory) gave."
            raise OperationTypeError(what, type(state).__name__, (), advice)
        if outputs is None:
            what = f"{call}: no output fields for"
            advice = "Name the fields that it appends as the last argument."
            raise OperationTypeError(what, operation_name(function), (), advice)
        check_selection(call, inputs or Fields(), self._node.fields)
        check_queryable(call, function, self._node, inputs or Fields(), state._node)
        node = self._builder.add(
            StateQueryNode,
            parent=self._node,
            state=state._node,
            inputs=inputs or Fields(),
            function=function,
            outputs=outputs,
        )
        return self._stream(node)

    @overload
    def partitionPersist(
        self,
        state: StateLike,
        updater: StateUpdater[Any],
        outputs: FieldsLike = ...,
        /,
        *,
        name: str | None = None,
    ) -> TridentState: ...
    @overload
    def partitionPersist(
        self,
        state: StateLike,
        inputs: FieldsLike,
        updater: StateUpdater[Any],
        outputs: FieldsLike = ...,
        /,
        *,
        name: str | None = None,
    ) -> TridentState: ...
    def partitionPersist(
        self, state: Any, /, *arguments: Any, name: str | None = None
    ) -> TridentState:
        """Write tuples to a state: ``partitionPersist(state, [inputs,] updater [, outputs])``.

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
        """
        call = "partitionPersist"
        inputs, given, outputs = split_arguments(call, arguments, most=2)
        declaration = self._builder.state(call, state, name, outputs or Fields())
        updater = as_instance(call, given, StateUpdater)
        check_selection(call, inputs or Fields(), self._node.fields)
        seen = self._node.fields.select(inputs or Fields())
        fields = typed_outputs(outputs or Fields(), updater.infer_types(seen))
        node = self._builder.add(
            StateUpdateNode,
            parent=self._node,
            state=declaration,
            inputs=inputs or Fields(),
            updater=updater,
            outputs=fields,
        )
        return TridentState(self._builder, node)
