"""The updaters of ``persistentAggregate`` and of tables of windows.

The former add the aggregates of a batch to a state, and define the result. An engine may call the
state's bulk methods instead (``multiCombine``, ``multiFold``), which give the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from trident.operations.interfaces import (
    StateUpdater,
    TridentCollector,
)
from trident.states.keys import encode_key, one_of_equals
from trident.states.map_state import MapState, Snapshottable
from trident.states.updaters import CombinerValueUpdater, ReducerValueUpdater
from trident.tuples import TridentTuple, tuple_type
from trident.tuples.fields import Fields

S = TypeVar("S")


@dataclass(frozen=True)
class AggregatingUpdater(StateUpdater[S]):
    """Updates with an aggregator, which it prepares and cleans up with itself."""

    aggregator: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "_wrapped", (self.aggregator,))


@dataclass(frozen=True)
class MapCombinerAggStateUpdater(AggregatingUpdater[MapState]):
    """Combines the partial aggregate, each tuple's last field, of a key with the stored one."""

    group: Fields
    value: str
    positional = True

    def updateState(
        self, state: MapState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        keys = [tuple(t[:-1]) for t in tuples]
        updaters = [CombinerValueUpdater(self.aggregator, t[-1]) for t in tuples]
        for key, new in zip(keys, state.multiUpdate(keys, updaters), strict=True):
            collector.emit((*key, new))


@dataclass(frozen=True)
class MapReducerAggStateUpdater(AggregatingUpdater[MapState]):
    """Reduces the `inputs` of all tuples of a key onto the stored value."""

    group: Fields
    inputs: Fields

    def updateState(
        self, state: MapState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        by_key: dict[bytes, tuple[Sequence[Any], list[TridentTuple]]] = {}
        make = tuple_type(self.inputs)
        for t in tuples:
            fields = [t[name] for name in self.group]
            _, found = by_key.setdefault(encode_key(fields), (fields, []))
            found.append(make([t[name] for name in self.inputs]))
        keys = [list(map(one_of_equals, fields)) for fields, _ in by_key.values()]
        updaters = [ReducerValueUpdater(self.aggregator, found) for _, found in by_key.values()]
        for fields, new in zip(keys, state.multiUpdate(keys, updaters), strict=True):
            collector.emit((*fields, new))


@dataclass(frozen=True)
class CombinerAggStateUpdater(AggregatingUpdater[Snapshottable]):
    """Combines the batch's one aggregate with the stored one."""

    positional = True

    def updateState(
        self, state: Snapshottable, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        [partial] = tuples
        collector.emit((state.update(CombinerValueUpdater(self.aggregator, partial[0])),))


@dataclass(frozen=True)
class ReducerAggStateUpdater(AggregatingUpdater[Snapshottable]):
    """Reduces all tuples of the batch onto the stored value."""

    def updateState(
        self, state: Snapshottable, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        collector.emit((state.update(ReducerValueUpdater(self.aggregator, list(tuples))),))


@dataclass(frozen=True)
class WindowTableUpdater(StateUpdater[MapState]):
    """Keeps aggregates of windows by key, start and end; null removes an entry."""

    positional = True

    def updateState(
        self, state: MapState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        keys = [(*t[:-3], t[-2], t[-1]) for t in tuples]
        state.multiPut(keys, [t[-3] for t in tuples])
