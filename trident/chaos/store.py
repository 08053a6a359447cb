"""The store of a campaign: one that is given, or one that is started, and then may be hurt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.chaos.contender import Contender, Maps, TopologyFunction, WordSource, truth_of
from trident.chaos.record import Record
from trident.chaos.servers import STORES, TIMEOUT, Trouble, started
from trident.chaos.truth import Truth
from trident.chaos.word_count import topology as word_count
from trident.states.errors import UsageError
from trident.states.maps.factory import MapStateFactory

if TYPE_CHECKING:
    from trident.chaos.ways import Way


@dataclass(frozen=True)
class MapStore:
    """Where maps are kept; `TableStore` is its like for tables.

    Each of the `troubles` returns what it was.
    """

    url: str
    troubles: Sequence[Trouble] = ()

    def record(self, seed: str, length: int) -> Record:
        return Record(seed, length)

    def truth(self, make: TopologyFunction, record: Record) -> Truth:
        return truth_of(make, record)

    def kept(self, make: TopologyFunction) -> Maps:
        """Return what the topology that is put to the test keeps in the store."""
        return Maps(make, _factory(StateURL.parse(self.url)))

    def compared(self, way: Way, record: Record, source: WordSource) -> Sequence[Contender]:
        """Return what can't be exact."""
        # Of values alone: a batch that runs twice counts twice
        url = StateURL.parse(self.url)
        plain = _factory(replace(url, options={**url.options, "kind": "nontransactional"}))
        by_hand = way.by_hand(record, plain)
        return [*by_hand, way.declared("kind=nontransactional", Maps(word_count, plain), source)]


@contextmanager
def opened(text: str, folder: Path) -> Iterator[MapStore]:
    """Give the store of a URL; start a server of its own where the URL names none.

    ``"redis:"`` starts a Redis server, ``"sqlite:"`` makes a file.
    """
    url = StateURL.parse(text)
    if url.scheme == "memory":
        raise UsageError(
            "--state memory: is gone with the driver that is killed",
            advice='Give a store that outlives it, as "sqlite:" or "redis:".',
        )
    if "prefix" in url.options:
        raise UsageError("--state: leave prefix= out, as each episode has a new one")
    if url.scheme == "sqlite":
        yield MapStore(text if url.path else url_at(f"sqlite:{folder}/state.db", url.options))
    elif url.hosts:
        yield MapStore(text)
    else:
        with started("--state", url.scheme, STORES, folder) as server:
            options = {"timeout": str(server.timeout or TIMEOUT), **server.options, **url.options}
            yield MapStore(url_at(server.url, options), server.troubles)


def url_at(place: str, options: Mapping[str, str]) -> str:
    told = "&".join(f"{name}={value}" for name, value in options.items())
    return f"{place}?{told}" if told else place


def _factory(url: StateURL) -> MapStateFactory:
    factory = state_from_url(url)
    if not isinstance(factory, MapStateFactory):
        raise UsageError("--state: only map states can be compared, found", type(factory).__name__)
    return factory
