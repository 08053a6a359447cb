"""Several aggregators over the same tuples, as one: what ``chainedAgg`` runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

from trident.operations.emitted import ListCollector
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    Operation,
    ReducerAggregator,
    TridentCollector,
    operation_name,
)
from trident.tuples import tuple_type
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class Link:
    """One aggregator of a chain."""

    inputs: Fields
    aggregator: CombinerAggregator[Any] | ReducerAggregator[Any] | Aggregator[Any]
    outputs: Fields


class ChainedAggregator(Aggregator["list[_Part]"]):
    """Runs all aggregators of a chain; emits every combination, the last one varying fastest."""

    positional = True

    def __init__(self, links: Sequence[Link], inputs: Fields) -> None:
        self.links = tuple(links)
        self._places = [tuple(map(inputs.index, link.inputs)) for link in links]
        self._aggregators = [as_aggregator(link.aggregator) for link in links]
        self._wrapped = operations = self._aggregators
        self.deterministic = all(operation.deterministic for operation in operations)
        self.acts_on_nothing = any(operation.acts_on_nothing for operation in operations)
        self.label = f"chained({', '.join(map(operation_name, operations))})"

    @property
    def combines(self) -> bool:
        """Whether all are combiners, so that the results of partitions can be combined."""
        return all(isinstance(each, _Combined) for each in self._aggregators)

    def of_partials(self, outputs: Fields) -> ChainedAggregator:
        """The chain that combines the `outputs` that this one has made of several partitions."""
        links = [
            Link(link.outputs, CombinedPartials(link.aggregator), link.outputs)
            for link in self.links
            if isinstance(link.aggregator, CombinerAggregator)
        ]
        return ChainedAggregator(links, outputs)

    def init(self, batchId: object, collector: TridentCollector) -> list[_Part]:
        parts = zip(self._aggregators, self.links, strict=True)
        return [_Part(aggregator, link, batchId) for aggregator, link in parts]

    def aggregate(
        self, val: list[_Part], tuple: Sequence[Any], collector: TridentCollector
    ) -> None:
        for part, places in zip(val, self._places, strict=True):
            part.take_in([tuple[place] for place in places])

    def complete(self, val: list[_Part], collector: TridentCollector) -> None:
        for rows in product(*(part.complete() for part in val)):
            collector.emit([*chain.from_iterable(rows)])

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        types: list[str | None] = []
        for link in self.links:
            known = link.aggregator.infer_types(inputs.select(link.inputs))
            types += link.outputs.with_types(known).types.values()
        return types


class _Part:
    """One aggregator of a chain, while it runs."""

    def __init__(self, aggregator: Aggregator[Any], link: Link, batchId: object) -> None:
        self._aggregator = aggregator
        self._tuple: Any = tuple if aggregator.positional else tuple_type(link.inputs)
        self._collector = ListCollector(operation_name(aggregator), len(link.outputs))
        self._value = aggregator.init(batchId, self._collector)

    def take_in(self, values: Sequence[Any]) -> None:
        value = self._aggregator.aggregate(self._value, self._tuple(values), self._collector)
        if value is not None:
            self._value = value

    def complete(self) -> Sequence[Sequence[Any]]:
        """All tuples that it has emitted."""
        self._aggregator.complete(self._value, self._collector)
        return self._collector.rows


class _Seen(Aggregator[list[Any]]):
    """A combiner or reducer as an `Aggregator`; its value is in a list, as null is a value too."""

    def __init__(self, operation: CombinerAggregator[Any] | ReducerAggregator[Any]) -> None:
        self.operation: Any = operation
        self._wrapped = (operation,)
        self.deterministic = operation.deterministic
        self.positional = operation.positional
        self.label = operation_name(operation)

    def init(self, batchId: object, collector: TridentCollector) -> list[Any]:
        return []

    def complete(self, val: list[Any], collector: TridentCollector) -> None:
        collector.emit(val)

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        made: Sequence[str | None] = self.operation.infer_types(inputs)
        return made


class _Reduced(_Seen):
    def init(self, batchId: object, collector: TridentCollector) -> list[Any]:
        return [self.operation.init()]

    def aggregate(self, val: list[Any], tuple: Any, collector: TridentCollector) -> None:
        val[0] = self.operation.reduce(val[0], tuple)


class _Combined(_Seen):
    def aggregate(self, val: list[Any], tuple: Any, collector: TridentCollector) -> None:
        given = self._given(tuple)
        val[:] = [self.operation.combine(val[0], given) if val else given]

    def complete(self, val: list[Any], collector: TridentCollector) -> None:
        collector.emit(val or [self.operation.zero()])

    def _given(self, tuple: Any) -> Any:
        return self.operation.init(tuple)


class CombinedPartials(_Combined):
    """A combiner over the aggregates that it has made in several partitions."""

    def __init__(self, combiner: CombinerAggregator[Any]) -> None:
        super().__init__(combiner)
        self.positional = True

    def _given(self, tuple: Any) -> Any:
        return tuple[0]


def as_aggregator(operation: Operation) -> Aggregator[Any]:
    """Any aggregator as an `Aggregator`."""
    if isinstance(operation, CombinerAggregator):
        return _Combined(operation)
    if isinstance(operation, ReducerAggregator):
        return _Reduced(operation)
    assert isinstance(operation, Aggregator)
    return operation
