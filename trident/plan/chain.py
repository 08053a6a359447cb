"""A chain of aggregators while it is declared, and the nodes that it becomes at its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

from trident.errors import FieldError
from trident.operations.chained import ChainedAggregator, CombinedPartials, Link, as_aggregator
from trident.operations.interfaces import Aggregator, CombinerAggregator, ReducerAggregator
from trident.plan.arguments import Given, as_instance
from trident.plan.builder import Builder
from trident.plan.lowering import own_copy
from trident.plan.nodes import (
    AggregateNode,
    AnyAggregator,
    Node,
    PartitionAggregateNode,
    PartitionNode,
)
from trident.plan.step_checks import check_aggregate_shape, check_new_fields, check_selection
from trident.tuples.fields import Fields


class Called(NamedTuple):
    """One call of a chain: what its aggregator reads, the aggregator, and what it makes."""

    inputs: Fields
    aggregator: AnyAggregator
    outputs: Fields


@dataclass(frozen=True)
class Chain:
    """The calls between ``chainedAgg`` and ``chainEnd``; immutable.

    `parent` is the step whose tuples are aggregated.
    """

    builder: Builder
    parent: Node
    group: Fields | None
    called: tuple[Called, ...] = ()

    def then(self, call: str, given: Given) -> Chain:
        """The chain with one more aggregator: ``([inputs,] aggregator, outputs)``."""
        named, operation, made = given
        kinds = CombinerAggregator, ReducerAggregator, Aggregator
        aggregator = as_instance(call, operation, *kinds)
        inputs, outputs = named or Fields(), made or Fields()
        check_selection(call, inputs, self.parent.fields)
        check_aggregate_shape(call, aggregator, inputs, outputs)
        aggregator.infer_types(self.parent.fields.select(inputs))
        check_new_fields(call, outputs, self.group or Fields())
        for name in outputs:
            if any(name in earlier.outputs for earlier in self.called):
                what = f"{call}: Output fields for chained aggregators must be distinct, found"
                raise FieldError(what, name, (), "Give each field another name.")
        return replace(self, called=(*self.called, Called(inputs, aggregator, outputs)))

    def end(self, kind: type[AggregateNode] | type[PartitionAggregateNode]) -> Node:
        """Add the steps: aggregates of each partition, or of the batch.

        Of a batch, combiners alone combine in each partition first.
        """
        if len(self.called) == 1:
            [only] = self.called
            return self._aggregated(kind, self.parent, *only)
        combiners = all(isinstance(one.aggregator, CombinerAggregator) for one in self.called)
        if kind is AggregateNode and combiners:
            return self._combined()
        return self._chained(kind, self.parent, self.called)

    def _combined(self) -> Node:
        with self.builder.together():
            partial = self._chained(PartitionAggregateNode, self.parent, self.called)
            moved = self.builder.add(
                PartitionNode,
                parent=partial,
                how="partitionBy" if self.group else "batchGlobal",
                by=self.group,
            )
            again = [
                Called(
                    inputs=Fields(*one.outputs.names),
                    aggregator=CombinedPartials(own_copy(one.aggregator)),
                    outputs=partial.fields.select(one.outputs),
                )
                for one in self.called
                if isinstance(one.aggregator, CombinerAggregator)
            ]
            return self._chained(PartitionAggregateNode, moved, again)

    def _chained(
        self,
        kind: type[AggregateNode] | type[PartitionAggregateNode],
        parent: Node,
        called: Iterable[Called],
    ) -> Node:
        inputs = Fields(*dict.fromkeys(name for one in called for name in one.inputs))
        links = [
            Link(parent.fields.select(one.inputs), as_aggregator(one.aggregator), one.outputs)
            for one in called
        ]
        outputs = reduce(Fields.__add__, (one.outputs for one in called))
        return self._aggregated(kind, parent, inputs, ChainedAggregator(links, inputs), outputs)

    def _aggregated(
        self,
        kind: type[AggregateNode] | type[PartitionAggregateNode],
        parent: Node,
        inputs: Fields,
        aggregator: AnyAggregator,
        outputs: Fields,
    ) -> Node:
        return self.builder.add(
            kind,
            parent=parent,
            group=self.group,
            inputs=inputs,
            aggregator=aggregator,
            outputs=outputs,
        )
