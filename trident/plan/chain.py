"""A chain of aggregators while it is declared, and the step that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from trident.errors import FieldError
from trident.operations.chained import ChainedAggregator, Link
from trident.operations.interfaces import Aggregator, CombinerAggregator, ReducerAggregator
from trident.plan.arguments import Given, as_instance
from trident.plan.builder import Position
from trident.plan.nodes import AggregateNode, Node, PartitionAggregateNode
from trident.plan.step_checks import check_aggregate
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class Chain:
    """The calls between ``chainedAgg`` and ``chainEnd``; immutable."""

    at: Position
    links: tuple[Link, ...] = ()

    def then(self, call: str, given: Given) -> Chain:
        """The chain with one more aggregator: ``([inputs,] aggregator, outputs)``."""
        named, operation, made = given
        kinds = CombinerAggregator, ReducerAggregator, Aggregator
        aggregator = as_instance(call, operation, *kinds)
        inputs, outputs = named or Fields(), made or Fields()
        check_aggregate(call, aggregator, self.at.fields, self.at.group, inputs, outputs)
        for name in outputs:
            if any(name in earlier.outputs for earlier in self.links):
                what = f"{call}: Output fields for chained aggregators must be distinct, found"
                raise FieldError(what, name, (), "Give each field another name.")
        link = Link(self.at.fields.select(inputs), aggregator, outputs)
        return replace(self, links=(*self.links, link))

    def end(self, kind: type[AggregateNode] | type[PartitionAggregateNode]) -> Node:
        """Add the step: an aggregate of each partition, or of the batch."""
        [link, *others] = self.links
        inputs, aggregator, outputs = link.inputs, link.aggregator, link.outputs
        if others:
            inputs = Fields(*dict.fromkeys(name for one in self.links for name in one.inputs))
            aggregator = ChainedAggregator(self.links, inputs)
            outputs = reduce(Fields.__add__, (one.outputs for one in self.links))
        parts = {"inputs": inputs, "aggregator": aggregator, "outputs": outputs}
        return self.at.add(kind, group=self.at.group, **parts)
