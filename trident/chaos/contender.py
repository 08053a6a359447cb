"""What is put to the test: something that counts the words of a record in a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self
from uuid import uuid4

from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryStore
from trident.batch.states import close_states, make_states
from trident.batch.watchpoints import POINTS, watching
from trident.chaos.process import Life
from trident.chaos.record import Record, Words
from trident.chaos.truth import Key, Reading, Truth
from trident.plan.nodes import StateNode
from trident.plan.plan import Plan
from trident.spouts.fixed import FixedBatchSpout
from trident.states.errors import UsageError
from trident.states.keys import decode_key
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.reading import read_committed
from trident.states.maps.stored_map import StoredMap
from trident.states.state import State
from trident.states.values import StateType

_RETRIES = 30
TopologyFunction = Callable[[Any, Any], TridentTopology]


@dataclass(frozen=True)
class EpisodePlace:
    """The folder, the names and the seed of an episode.

    The folder is empty at first. It holds the checkpoint and other files of the drivers. The names
    of states begin with `name`, so that they are new; the sizes of batches follow from `seed`.
    `logs` is the URL of the store that keeps the logs; empty if the folder does.
    """

    folder: Path
    name: str
    seed: str
    logs: str = ""

    @property
    def checkpoint(self) -> Path:
        """The folder of the topology's log, or of what else can only be files."""
        return self.folder / "checkpoint"

    @property
    def notes(self) -> Path:
        """The file in which processes of a driver note what happens to them, a line each."""
        return self.folder / "notes"

    @property
    def checkpoints(self) -> dict[str, Any]:
        """The arguments of a start that say where its checkpoint is."""
        if not self.logs:
            return {"checkpoint": self.checkpoint}
        place, mark, options = self.logs.partition("?")
        url = f"{place.rstrip('/')}/{self.name}{mark}{options}"
        return {"checkpoint": url, "spark_checkpoint": self.checkpoint}


class Contender(ABC):
    """What is put to the test.

    `reads_whole` promises that readers see whole batches. `points` are those of the `POINTS` that
    its batches pass. `taken_over` is the share of rounds in which a driver is taken over.
    """

    name: str
    reads_whole: bool
    points: Sequence[str] = POINTS
    taken_over: ClassVar[float] = 0.15

    @abstractmethod
    def drive(self, place: EpisodePlace, life: Life) -> None:
        """Count the words that are not counted yet, in the process of a driver."""

    @abstractmethod
    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> AbstractContextManager[Reader]:
        """Return what reads the values of `keys`, in the process of a reader."""

    def before(self, place: EpisodePlace) -> None:
        """Prepare for an episode, in a process of its own."""

    def counts_all(self, life: Life) -> bool:
        """Whether a driver that has finished has counted all words."""
        return True


Reader = Callable[[], Reading]


class WordSource(ABC):
    """Where the words of an episode come from; pickles."""

    troubles: Sequence[Callable[[], str]] = ()
    """What can happen to it."""

    def before(self, place: EpisodePlace) -> None:
        """Prepare for an episode, in a process of its own."""

    @abstractmethod
    def make(self, place: EpisodePlace, life: int) -> Any:
        """Return what the topology of a driver reads from."""


@dataclass(frozen=True)
class OwnSpout(WordSource):
    """A spout that needs nothing from outside."""

    record: Record
    most: int
    kind: str
    end: int | None = None

    def make(self, place: EpisodePlace, life: int) -> Words:
        return Words(self.record, self.most, place.seed, self.kind, self.end)


@dataclass(frozen=True)
class FreshFactory(MapStateFactory):
    """A factory whose states have names that no episode before had; pickles."""

    fresh: str = ""

    @classmethod
    def of(cls, factory: MapStateFactory, fresh: str) -> Self:
        same = {each.name: getattr(factory, each.name) for each in fields(MapStateFactory)}
        return cls(**same, fresh=fresh)

    def named(self, name: str) -> Self:
        return super().named(f"{self.fresh}-{name}")


class EpisodeTopology(ABC):
    """A topology whose states are new in each episode, and how these are read; pickles.

    `reads_whole` is as a contender's.
    """

    reads_whole: bool

    def options(self, place: EpisodePlace) -> dict[str, Any]:
        """Return arguments with which its topology has to be started."""
        return {}

    @abstractmethod
    def declare(self, place: EpisodePlace, source: Any, life: int) -> TridentTopology:
        """Return the topology of an episode, over a source, for one of its drivers."""

    @abstractmethod
    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> AbstractContextManager[Reader]:
        """Return what reads the values of `keys`, in the process of a reader."""


@dataclass(frozen=True)
class MapTopology(EpisodeTopology):
    """Map states, made by a factory."""

    factory: MapStateFactory

    @property
    def reads_whole(self) -> bool:  # type: ignore[override]
        """Whether its states show whole batches only."""
        return self.factory.kind is StateType.OPAQUE

    def fresh(self, place: EpisodePlace) -> MapStateFactory:
        """Return the factory of an episode."""
        return FreshFactory.of(self.factory, place.name)

    @contextmanager
    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> Iterator[Reader]:
        # What it reads from doesn't matter here.
        plan = self.declare(place, FixedBatchSpout("word string", 1), 0).plan()
        with views_of(plan) as states:
            by_state: dict[str, list[tuple[Any, ...] | None]] = {}
            for name, key in keys:
                by_state.setdefault(name, []).append(key)
            asked = [by_state.get(name, []) for name, _, _ in states]

            def query(views: Sequence[Any]) -> Reading:
                found: dict[Key, Any] = {}
                for (name, _, _), view, wanted in zip(states, views, asked, strict=True):
                    keys = [key for key in wanted if key is not None]
                    values = view.multiGet(keys)
                    for key, value in zip(keys, values, strict=True):
                        found[name, key] = value
                    if None in wanted:
                        found[name, None] = view.get()
                return found

            yield lambda: read_committed([(group, state) for _, group, state in states], query)


@dataclass(frozen=True)
class FunctionTopology(MapTopology):
    """The states of one topology.

    `make` declares it: from a source, a stream of the field ``word``, and a factory of its states.
    """

    make: TopologyFunction

    def declare(self, place: EpisodePlace, source: Any, life: int) -> TridentTopology:
        return self.make(source, self.fresh(place))


@dataclass(frozen=True)
class TopologyContender(Contender):
    """A topology."""

    name: str
    topology: EpisodeTopology
    source: WordSource

    @property
    def reads_whole(self) -> bool:  # type: ignore[override]
        return self.topology.reads_whole

    def before(self, place: EpisodePlace) -> None:
        self.source.before(place)

    def declare(self, place: EpisodePlace, life: Life) -> TridentTopology:
        return self.topology.declare(place, self.source.make(place, life.number), life.number)

    def drive(self, place: EpisodePlace, life: Life) -> None:
        # Attempts may fail as their tasks do; and some drivers let batches overlap.
        options = {**place.checkpoints, **self.topology.options(place), "retries": _RETRIES}
        options |= {"max_pending": 3} if life.number % 4 == 3 else {}
        with self.declare(place, life).start(None, trigger="available", **options) as run:
            run.awaitTermination()

    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> AbstractContextManager[Reader]:
        return self.topology.reading(place, keys)


@cache
def truth_of(make: TopologyFunction, record: Record) -> Truth:
    """Run a topology over the record, a word a batch, without a fault, in this process's memory."""
    factory = MapStateFactory(MemoryStore(uuid4().hex, prefix=None))
    topology = make(Words(record, 1, "truth"), factory)
    readings: list[Reading] = []
    with views_of(topology.plan()) as states:
        pairs = [(group, state) for _, group, state in states]

        def query(views: Sequence[Any]) -> Reading:
            found: dict[Key, Any] = {}
            for (name, _, state), view in zip(states, views, strict=True):
                for encoded, value in view.entries():
                    key = decode_key(encoded)
                    found[name, None if key == tuple(state.key) else key] = value
            return found

        def watch(point: str, token: Any) -> None:
            if point == "after announce":
                readings.append(read_committed(pairs, query))

        with watching(watch), topology.start(None, trigger="available") as run:
            run.awaitTermination()
    return Truth.of_readings(readings[: record.length])


@contextmanager
def views_of(plan: Plan) -> Iterator[list[tuple[str, str, StoredMap]]]:
    """Give each state that batches update: its name, its group, and the state itself."""
    groups = {node: group.id for group in plan.groups for node in group.updates}
    if not groups:
        raise UsageError("the topology updates no state, so there is nothing to compare")
    states = make_states(groups)
    try:
        yield [(node.state.name, group, _map(node, states[node])) for node, group in groups.items()]
    finally:
        close_states(states.values())


def _map(node: StateNode, state: State) -> StoredMap:
    if not isinstance(state, StoredMap):
        raise UsageError(f"the state {node.state.name} is no map, and only maps can be compared")
    return state
