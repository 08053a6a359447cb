"""A chain of aggregators while it is declared, and the step that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

from trident.errors import FieldError
from trident.operations.chained import ChainedAggregator, Link, as_aggregator
from trident.operations.interfaces import Aggregator, CombinerAggregator, ReducerAggregator
from trident.plan.arguments import Given, as_instance
from trident.plan.builder import Position
from trident.plan.nodes import AggregateNode, AnyAggregator, Node, PartitionAggregateNode
from trident.plan.step_checks import check_aggregate
from trident.tuples.fields import Fields


class Called(NamedTuple):
    """One call of a chain: what its aggregator reads, the aggregator, and what it makes."""

    inputs: Fields
    aggregator: AnyAggregator
    outputs: Fields


@dataclass(frozen=True)
class Chain:
    """The calls between ``chainedAgg`` and ``chainEnd``; immutable."""

    at: Position
    called: tuple[Called, ...] = ()

    def then(self, call: str, given: Given) -> Chain:
        """The chain with one more aggregator: ``([inputs,] aggregator, outputs)``."""
        named, operation, made = given
        kinds = CombinerAggregator, ReducerAggregator, Aggregator
        aggregator = as_instance(call, operation, *kinds)
        inputs, outputs = named or Fields(), made or Fields()
        check_aggregate(call, aggregator, self.at.fields, self.at.group, inputs, outputs)
        for name in outputs:
            if any(name in earlier.outputs for earlier in self.called):
                what = f"{call}: Output fields for chained aggregators must be distinct, found"
                raise FieldError(what, name, (), "Give each field another name.")
        return replace(self, called=(*self.called, Called(inputs, aggregator, outputs)))

    def end(self, kind: type[AggregateNode] | type[PartitionAggregateNode]) -> Node:
        """Add the step: an aggregate of each partition, or of the batch."""
        if len(self.called) == 1:
            [(inputs, aggregator, outputs)] = self.called
        else:
            inputs = Fields(*dict.fromkeys(name for one in self.called for name in one.inputs))
            aggregator = ChainedAggregator([self._link(one) for one in self.called], inputs)
            outputs = reduce(Fields.__add__, (one.outputs for one in self.called))
        parts = {"inputs": inputs, "aggregator": aggregator, "outputs": outputs}
        return self.at.add(kind, group=self.at.group, **parts)

    def _link(self, one: Called) -> Link:
        inputs = self.at.fields.select(one.inputs)
        return Link(inputs, as_aggregator(one.aggregator), one.outputs)
