"""A state of the topology: what streams query, and whose new values go on as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trident.errors import PlanError
from trident.plan.builder import Builder
from trident.plan.nodes import HintNode, NewValuesNode, StateUpdateNode, StaticStateNode

if TYPE_CHECKING:
    from trident.stream import Stream


class TridentState:
    """A handle on a state, made by the call that declares the state.

    Attributes
    ----------
    name : str
        The state's name, unique in the topology.
    """

    def __init__(self, builder: Builder, node: StateUpdateNode | StaticStateNode) -> None:
        self._builder = builder
        self._node = node

    @property
    def name(self) -> str:
        return self._node.state.name

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
        from trident.stream import Stream  # a stream makes states, so neither comes first

        if isinstance(self._node, StaticStateNode):
            advice = "Only a state that this topology updates has new values."
            raise PlanError("newValuesStream: nothing updates the state", self.name, (), advice)
        if not self._node.fields:
            advice = "Name the fields it emits as the last argument of partitionPersist()."
            raise PlanError(
                "newValuesStream: the updater has no output fields for", self.name, (), advice
            )
        return Stream(self._builder, self._builder.add(NewValuesNode, parent=self._node))

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
        self._builder.add(HintNode, parent=self._node, parallelism=parallelism)
        return self
