"""What is put to the test: something that counts the words of a record in a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from trident.plan.plan import Plan
from trident.spouts.fixed import FixedBatchSpout
from trident.states.errors import UsageError
from trident.states.keys import decode_key
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.reading import read_committed
from trident.states.maps.stored_map import StoredMap
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
    its batches pass. `taken_over` is the share of rounds in which a driver is taken over, if that
    is more than the episode's own.
    """

    name: str
    reads_whole: bool
    points: Sequence[str] = POINTS
    taken_over: ClassVar[float] = 0.0

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


RunTopology = Callable[[TridentTopology, Mapping[str, Any], Life], None]
"""Runs a topology in the process of a driver, with options of its start, until all is counted."""


def run_here(topology: TridentTopology, options: Mapping[str, Any], life: Life) -> None:
    """Run a topology without Spark; some drivers let batches overlap."""
    # Attempts may fail as their tasks do.
    pending = 3 if life.number % 4 == 3 else 1
    own = {"trigger": "available", "retries": _RETRIES, "max_pending": pending}
    with topology.start(None, **{**options, **own}) as run:
        run.awaitTermination()


@dataclass(frozen=True)
class TopologyContender(Contender):
    """A topology over a source, whose states are new in each episode; `run` runs it."""

    name: str
    source: WordSource
    run: RunTopology

    def before(self, place: EpisodePlace) -> None:
        self.source.before(place)

    def drive(self, place: EpisodePlace, life: Life) -> None:
        topology = self.declare(place, self.source.make(place, life.number), life.number)
        self.run(topology, {**place.checkpoints, **self.options(place)}, life)

    def options(self, place: EpisodePlace) -> dict[str, Any]:
        """Return further options of the start."""
        return {}

    @abstractmethod
    def declare(self, place: EpisodePlace, source: Any, life: int) -> TridentTopology:
        """Return the topology of an episode, over a source, for one of its drivers."""


@dataclass(frozen=True)
class MapContender(TopologyContender):
    """A topology that keeps map states.

    `make` declares it: from a source, a stream of the field ``word``, and a factory of its states.
    """

    factory: MapStateFactory
    make: TopologyFunction

    @property
    def reads_whole(self) -> bool:  # type: ignore[override]
        """Whether its states show whole batches only."""
        return self.factory.kind is StateType.OPAQUE

    def fresh(self, place: EpisodePlace) -> MapStateFactory:
        """Return the factory of an episode."""
        return FreshFactory.of(self.factory, place.name)

    def declare(self, place: EpisodePlace, source: Any, life: int) -> TridentTopology:
        return self.make(source, self.fresh(place))

    def plan(self, place: EpisodePlace) -> Plan:
        """Return the plan for a reader, whose source does not matter."""
        return self.declare(place, FixedBatchSpout("word string", 1), 0).plan()

    @contextmanager
    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> Iterator[Reader]:
        by_state: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for name, key in keys:
            if key is not None:
                by_state[name].append(key)

        def query(views: Mapping[str, Any]) -> Reading:
            found: dict[Key, Any] = {key: views[key[0]].get() for key in keys if key[1] is None}
            for name, own in by_state.items():
                values = views[name].multiGet(own)
                found.update({(name, key): value for key, value in zip(own, values, strict=True)})
            return found

        with open_states(self.plan(place)) as states:
            yield lambda: states.read(query)


@cache
def truth_of(make: TopologyFunction, record: Record) -> Truth:
    """Run a topology over the record, a word a batch, without a fault, in this process's memory."""
    factory = MapStateFactory(MemoryStore(uuid4().hex, prefix=None))
    topology = make(Words(record, 1, "truth"), factory)
    readings: list[Reading] = []
    with open_states(topology.plan()) as states:

        def query(views: Mapping[str, Any]) -> Reading:
            found: dict[Key, Any] = {}
            for name, view in views.items():
                single = tuple(states.maps[name].key)
                for encoded, value in view.entries():
                    key = decode_key(encoded)
                    found[name, None if key == single else key] = value
            return found

        def watch(point: str, token: Any) -> None:
            if point == "after announce":
                readings.append(states.read(query))

        with watching(watch), topology.start(None, trigger="available") as run:
            run.awaitTermination()
    return Truth.of_readings(readings[: record.length])


@dataclass(frozen=True)
class OpenStates:
    """The map states that batches of a topology update, by name, and their groups."""

    maps: Mapping[str, StoredMap]
    groups: Mapping[str, str]

    def read(self, query: Callable[[Mapping[str, Any]], Reading]) -> Reading:
        """Run a query on views of all states, by name, as of one committed batch."""
        pairs = [(self.groups[name], state) for name, state in self.maps.items()]
        return read_committed(pairs, lambda views: query(dict(zip(self.maps, views, strict=True))))


@contextmanager
def open_states(plan: Plan) -> Iterator[OpenStates]:
    """Open the states that batches of a plan update."""
    groups = {node: group.id for group in plan.groups for node in group.updates}
    if not groups:
        raise UsageError("the topology updates no state, so there is nothing to compare")
    states = make_states(groups)
    try:
        maps: dict[str, StoredMap] = {}
        for node, state in states.items():
            if not isinstance(state, StoredMap):
                what = f"the state {node.state.name} is no map, and only maps can be compared"
                raise UsageError(what)
            maps[node.state.name] = state
        yield OpenStates(maps, {node.state.name: group for node, group in groups.items()})
    finally:
        close_states(states.values())
