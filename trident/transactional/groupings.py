"""Which task of a bolt gets a tuple: the groupings of Storm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.operations.interfaces import CustomStreamGrouping
from trident.states.keys import encode_key
from trident.states.sharding import shard_of
from trident.transactional.carried import unpack
from trident.tuples import TridentTuple, tuple_type
from trident.tuples.fields import Fields

Grouping = Callable[[Sequence[int], Sequence[Any], int], Sequence[int]]
"""Chooses the tasks for a tuple of one source, which is carried: from all tasks, the tuple, and how
many were before it in this partition. It pickles."""


def shuffled(tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
    """One task after the other."""
    return [tasks[seen % len(tasks)]]


def to_each(tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
    """A copy for each task."""
    return tasks


def to_first(tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
    """All to one task."""
    return tasks[:1]


def direct(tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
    """To the task that ``emitDirect`` named; other tuples go nowhere."""
    named = carried[1]
    return [] if named is None else [named]  # a missing task is an error of the step


@dataclass(frozen=True)
class ByFields:
    """Equal values of some fields to one task: the checksum of the encoded key tells which."""

    positions: tuple[int, ...]

    def __call__(self, tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
        values = unpack(carried[2])
        key = encode_key(tuple(values[position] for position in self.positions))
        return [tasks[shard_of(key, len(tasks))]]


@dataclass(frozen=True)
class Custom:
    """As a grouping of the user's says, which is given the tuple without the attempt."""

    grouping: CustomStreamGrouping
    fields: Fields

    def __call__(self, tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
        return self.grouping.chooseTasks(tasks, tuple_type(self.fields)(unpack(carried[2])))


class Groupings(CustomStreamGrouping):
    """The groupings of a bolt: each source has its own."""

    def __init__(self, by_source: Mapping[str, Grouping]) -> None:
        self._by_source = dict(by_source)
        self._seen = 0

    def chooseTasks(self, targetTasks: Sequence[int], values: TridentTuple) -> list[int]:
        self._seen += 1
        return list(self._by_source[values[0]](targetTasks, values, self._seen - 1))
