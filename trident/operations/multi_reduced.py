"""Reducers of several streams as aggregators of one stream, which has the tuples of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.operations.interfaces import (
    Aggregator,
    GroupedMultiReducer,
    MapFunction,
    MultiReducer,
    TridentCollector,
    operation_name,
)
from trident.tuples import TridentTuple, tuple_type
from trident.tuples.fields import Fields


class Laid(MapFunction):
    """Lays the tuples of one stream, and its number and group, beside nulls for the other
    streams."""

    positional = True

    def __init__(
        self,
        number: int,
        group: Sequence[int],
        inputs: Sequence[int],
        before: int,
        after: int,
        count: int,
    ) -> None:
        self.label = f"stream {number + 1} of {count}"
        self._number = number
        self._group = group
        self._inputs = inputs
        self._before = (None,) * before
        self._after = (None,) * after

    def execute(self, tuple: Sequence[Any]) -> Sequence[Any]:
        group = [tuple[place] for place in self._group]
        inputs = [tuple[place] for place in self._inputs]
        return (self._number, *group, *self._before, *inputs, *self._after)


class _ReducerOfLaid(Aggregator[Any]):
    """A reducer that is handed the tuples that `Laid` has made, in the groups of the first
    stream."""

    positional = True

    def __init__(
        self,
        reducer: MultiReducer[Any] | GroupedMultiReducer[Any],
        group: Fields,
        inputs: Sequence[Fields],
    ) -> None:
        self._reducer: Any = reducer
        self._wrapped = (reducer,)
        self._inputs = tuple(inputs)
        self._group = group
        starts, start = [], 1 + len(group)
        for fields in inputs:
            starts.append((start, start + len(fields)))
            start += len(fields)
        self._places = tuple(starts)
        self.deterministic = reducer.deterministic
        self.label = operation_name(reducer)

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        made: Sequence[str | None] = self._reducer.infer_types(inputs)
        return made

    def _input(self, row: Sequence[Any]) -> tuple[int, TridentTuple]:
        number: int = row[0]
        start, end = self._places[number]
        return number, tuple_type(self._inputs[number])(row[start:end])


class MultiReduced(_ReducerOfLaid):
    """A `MultiReducer` as an aggregator."""

    def init(self, batchId: object, collector: TridentCollector) -> Any:
        return self._reducer.init(collector)

    def aggregate(self, val: Any, tuple: Sequence[Any], collector: TridentCollector) -> Any:
        return self._reducer.execute(val, *self._input(tuple), collector)

    def complete(self, val: Any, collector: TridentCollector) -> None:
        self._reducer.complete(val, collector)


class GroupedMultiReduced(_ReducerOfLaid):
    """A `GroupedMultiReducer` as an aggregator of groups: the first tuple tells which group."""

    def init(self, batchId: object, collector: TridentCollector) -> list[Any]:
        return []

    def aggregate(self, val: list[Any], tuple: Sequence[Any], collector: TridentCollector) -> None:
        if not val:
            group = tuple_type(self._group)(tuple[1 : 1 + len(self._group)])
            val[:] = [group, self._reducer.init(collector, group)]
        group, state = val
        number, values = self._input(tuple)
        changed = self._reducer.execute(state, number, group, values, collector)
        if changed is not None:
            val[1] = changed

    def complete(self, val: list[Any], collector: TridentCollector) -> None:
        group, state = val
        self._reducer.complete(state, group, collector)
