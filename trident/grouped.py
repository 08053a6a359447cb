"""A stream whose tuples are seen by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trident.aggregatable import Aggregatable
from trident.fields import Fields
from trident.plan.nodes import Node
from trident.trident_state import TridentState

if TYPE_CHECKING:
    from trident.stream import Stream


class GroupedStream(Aggregatable):
    """What ``groupBy`` gives; nothing is moved before an aggregate, a state or a query needs it.

    Two keys are one group when they are equal in encoded form: ``1``, ``True`` and ``1.0``
    differ, ``-0.0`` is ``0.0``, and null is a key like any other.
    """

    _group: Fields

    def _stream(self, node: Node) -> Stream:
        from trident.stream import Stream  # a stream makes groups, so neither comes first

        return Stream(self._builder, node)

    def getGroupFields(self) -> Fields:
        """The fields that make a group."""
        return self._node.fields.select(self._group)

    def toStream(self) -> Stream:
        """The stream without its groups."""
        return self._stream(self._node)

    def name(self, label: str) -> GroupedStream:
        """Label the steps up to here in plans and progress."""
        return self.toStream().name(label).groupBy(self._group)

    def each(self, *arguments: Any) -> GroupedStream:
        """``Stream.each``, still grouped."""
        return self.toStream().each(*arguments).groupBy(self._group)

    def partitionAggregate(self, *arguments: Any) -> GroupedStream:
        """Aggregate each group within each partition: ``partitionAggregate([inputs,] aggregator,
        outputs)``; the group fields and the outputs, still grouped."""
        node = self._partition_aggregate(arguments)
        return GroupedStream(self._builder, node, self._group)

    def stateQuery(self, state: Any, /, *arguments: Any) -> Stream:
        """``Stream.stateQuery``, with the tuples of a group in one partition."""
        with self._builder.together():
            return self._moved().stateQuery(state, *arguments)

    def partitionPersist(
        self, state: Any, /, *arguments: Any, name: str | None = None
    ) -> TridentState:
        """``Stream.partitionPersist``, with the tuples of a group in one partition."""
        with self._builder.together():
            return self._moved().partitionPersist(state, *arguments, name=name)

    def _moved(self) -> Stream:
        return self.toStream().partitionBy(self._group)
