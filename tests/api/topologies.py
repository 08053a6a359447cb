"""What the tests of the API declare over and over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.api.stream import Stream, TridentState
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.operations.builtin import Count, Split
from trident.operations.interfaces import (
    Aggregator,
    CustomStreamGrouping,
    Filter,
    Function,
    GroupedMultiReducer,
    ReducerAggregator,
    StateUpdater,
)
from trident.plan.nodes import Kind
from trident.spouts.fixed import FixedBatchSpout
from trident.states.backing_map import IBackingMap
from trident.states.state import State, StateFactory

SENTENCES = "id long, sentence string"


def sentences(topology: TridentTopology, kind: Kind | None = None) -> Stream:
    """A stream of ``id`` and ``sentence``."""
    return topology.newStream("sentences", FixedBatchSpout(SENTENCES, 3), kind)


def word_count(stream: Stream, state: Any = None, **options: Any) -> TridentState:
    """The words of ``sentence``, counted."""
    words = stream.each("sentence", Split(), "word").groupBy("word")
    return words.persistentAggregate(
        MemoryMapState.Factory() if state is None else state, Count(), "count", **options
    )


class Same(Function):
    """Emits its input."""

    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit(list(tuple))


class Both(GroupedMultiReducer[list[Any]]):
    """What it is handed of the first stream, and of the second."""

    output_types = (int, int)

    def init(self, collector: Any, group: Any) -> list[Any]:
        return [None, None]

    def execute(
        self, state: list[Any], streamIndex: int, group: Any, input: Any, collector: Any
    ) -> None:
        state[streamIndex] = input[0]

    def complete(self, state: list[Any], group: Any, collector: Any) -> None:
        collector.emit(state)


class ById(CustomStreamGrouping):
    def chooseTasks(self, targetTasks: Sequence[int], values: Any) -> Sequence[int]:
        return [targetTasks[values["id"] % len(targetTasks)]]


def as_they_are(batch: Any) -> Any:
    return batch


def by_length(a: Any, b: Any) -> int:
    return len(a["sentence"]) - len(b["sentence"])


class Everything(Filter):
    def isKeep(self, tuple: Any) -> bool:
        return True


class Longest(ReducerAggregator[str]):
    output_types = (str,)

    def init(self) -> str:
        return ""

    def reduce(self, curr: str, tuple: Any) -> str:
        return max(curr, tuple[0], key=len)


class Tally(Aggregator[list[int]]):
    def init(self, batchId: object, collector: Any) -> list[int]:
        return [0]

    def aggregate(self, val: list[int], tuple: Any, collector: Any) -> None:
        val[0] += 1

    def complete(self, val: list[int], collector: Any) -> None:
        collector.emit(val)


class Write(StateUpdater[Any]):
    output_types = (str,)

    def updateState(self, state: Any, tuples: Sequence[Any], collector: Any) -> None:
        state.multiPut([(t[0],) for t in tuples], [True] * len(tuples))


class Log(State):
    """A state that is no map."""

    def beginCommit(self, batch: Any) -> None: ...

    def commit(self, batch: Any) -> None: ...


@dataclass(frozen=True)
class LogFactory(StateFactory):
    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> Log:
        return Log()


class TwoMethods(IBackingMap):
    """A store that can do no more than it must."""

    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [None] * len(keys)

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None: ...


class Column:
    """A column of a DataFrame's schema, as far as the API looks at it."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.dataType = self
        self._kind = kind

    def simpleString(self) -> str:
        return self._kind


class Frame:
    """A streaming DataFrame, as far as the API looks at it."""

    def __init__(self, *columns: Column, streaming: bool = True) -> None:
        self.schema = self
        self.fields = list(columns)
        self.isStreaming = streaming
