"""The store of a campaign: one that is given, or one that is started, and then may be hurt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.chaos.contender import (
    Contender,
    MapContender,
    TopologyContender,
    TopologyFunction,
    WordSource,
    truth_of,
)
from trident.chaos.record import Record
from trident.chaos.rounds import Episode
from trident.chaos.servers import STORES, TIMEOUT, Servers, Trouble, started
from trident.chaos.truth import Truth
from trident.chaos.word_count import topology as word_count
from trident.states.errors import UsageError
from trident.states.maps.factory import MapStateFactory

if TYPE_CHECKING:
    from trident.chaos.ways import Way


@dataclass(frozen=True)
class TestedStore(ABC):
    """A store, what is put to the test in it, and what happens to that.

    Each of the `troubles` returns its name.
    """

    option: ClassVar[str]
    """The option of the command that names it."""
    servers: ClassVar[Servers]
    """What is started if its URL names no host."""
    takes_topology: ClassVar[bool] = False
    """Whether a topology of the user's can be put to the test."""

    url: str
    troubles: Sequence[Trouble] = ()

    def record(self, seed: str, length: int) -> Any:
        return Record(seed, length)

    @abstractmethod
    def truth(self, make: TopologyFunction, record: Any) -> Truth:
        """Return what the states of the topology have to hold."""

    @abstractmethod
    def contender(
        self, name: str, make: TopologyFunction, way: Way, source: WordSource
    ) -> TopologyContender:
        """Return what is put to the test."""

    def episode(self, way: Way) -> type[Episode]:
        """Return what happens to the drivers of the topology."""
        return way.episode

    @abstractmethod
    def compared(self, way: Way, record: Any, source: WordSource) -> Sequence[Contender]:
        """Return what can't be exact."""

    def truth_of_compared(self, record: Any) -> Truth:
        return self.truth(word_count, record)


@dataclass(frozen=True)
class MapStore(TestedStore):
    """Map states, of a topology that nothing happens to but that its drivers are killed."""

    option = "--state"
    servers = STORES
    takes_topology = True

    def truth(self, make: TopologyFunction, record: Record) -> Truth:
        return truth_of(make, record)

    def contender(
        self, name: str, make: TopologyFunction, way: Way, source: WordSource
    ) -> TopologyContender:
        return MapContender(name, source, way.run, self.factory(), make)

    def compared(self, way: Way, record: Record, source: WordSource) -> Sequence[Contender]:
        # Of values alone: a batch that runs twice counts twice
        plain = self.plain()
        by_hand = way.by_hand(record, plain)
        name = "kind=nontransactional"
        return [*by_hand, MapContender(name, source, way.run, plain, word_count)]

    def factory(self, **options: str) -> MapStateFactory:
        """Return the factory of maps in the store, with further options of its URL."""
        url = StateURL.parse(self.url)
        return state_from_url(replace(url, options={**url.options, **options}))

    def plain(self) -> MapStateFactory:
        """Return that of maps of values alone."""
        return self.factory(kind="nontransactional")


@contextmanager
def opened(made: type[TestedStore], text: str, folder: Path) -> Iterator[TestedStore]:
    """Give the store of a URL; start a server of its own where the URL names none.

    ``"redis:"`` starts a Redis server, ``"sqlite:"`` makes a file.
    """
    url = StateURL.parse(text)
    if url.scheme == "memory":
        raise UsageError(
            f"{made.option} memory: ends with the driver that is killed",
            advice='Give a store that outlives it, as "sqlite:" or "redis:".',
        )
    if "prefix" in url.options:
        raise UsageError(f"{made.option}: leave prefix= out, as each episode has a new one")
    if url.hosts or url.path:
        yield made(text)
    elif url.scheme == "sqlite":
        yield made(_url_at(f"sqlite:{folder}/state.db", url.options))
    else:
        with started(made.option, url.scheme, made.servers, folder) as server:
            options = {"timeout": str(server.timeout or TIMEOUT), **server.options, **url.options}
            yield made(_url_at(server.url, options), server.troubles)


def _url_at(place: str, options: Mapping[str, str]) -> str:
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"{place}?{query}" if query else place
