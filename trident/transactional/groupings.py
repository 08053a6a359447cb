"""Which task of a bolt gets a tuple: the groupings of Storm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.operations.interfaces import CustomStreamGrouping
from trident.states.keys import encode_key
from trident.states.sharding import shard_of
from trident.transactional.carried import unpacked
from trident.tuples import TridentTuple, tuple_type
from trident.tuples.fields import Fields


class Grouping(ABC):
    """Chooses tasks for the tuples of one source; pickles."""

    @abstractmethod
    def choose(self, tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
        """Return the tasks for a tuple, of which `seen` were before it in this partition."""


class Shuffled(Grouping):
    """One task after the other."""

    def choose(self, tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
        return [tasks[seen % len(tasks)]]


class ToEach(Grouping):
    """A copy for each task."""

    def choose(self, tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
        return tasks


class ToFirst(Grouping):
    """All to one task."""

    def choose(self, tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
        return tasks[:1]


class Direct(Grouping):
    """To the task that ``emitDirect`` named; what was emitted otherwise goes nowhere."""

    def choose(self, tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
        named = carried[1]
        return [] if named is None else [named]  # one that isn't there is an error of the step


@dataclass(frozen=True)
class ByFields(Grouping):
    """Equal values of some fields to one task: the checksum of the encoded key tells which."""

    positions: tuple[int, ...]

    def choose(self, tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
        values = unpacked(carried[2])
        key = encode_key(tuple(values[position] for position in self.positions))
        return [tasks[shard_of(key, len(tasks))]]


@dataclass(frozen=True)
class Custom(Grouping):
    """As a grouping of the user's says.

    The user's grouping is given the tuple without the attempt.
    """

    grouping: CustomStreamGrouping
    fields: Fields

    def choose(self, tasks: Sequence[int], carried: Sequence[Any], seen: int) -> Sequence[int]:
        values = tuple_type(self.fields)(unpacked(carried[2]))
        return self.grouping.chooseTasks(tasks, values)


class Groupings(CustomStreamGrouping):
    """The groupings of a bolt: each source has its own."""

    def __init__(self, by_source: Mapping[str, Grouping]) -> None:
        self._by_source = dict(by_source)
        self._seen = 0

    def chooseTasks(self, targetTasks: Sequence[int], values: TridentTuple) -> list[int]:
        grouping = self._by_source[values[0]]
        self._seen += 1
        return list(grouping.choose(targetTasks, values, self._seen - 1))
