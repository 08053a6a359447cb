"""The store of a campaign: one that is given, or one that is started, and then may be hurt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.chaos.trouble import TIMEOUT, Trouble
from trident.states.errors import UsageError
from trident.states.maps.factory import MapStateFactory


@dataclass(frozen=True)
class ChaosStore:
    """What is counted in.

    `redis` is where it is, if it is one Redis server. Each of the `troubles` returns what it was.
    """

    url: str
    redis: tuple[str, int] | None = None
    troubles: Sequence[Trouble] = ()

    @property
    def factory(self) -> MapStateFactory:
        """Makes the states that are put to the test."""
        return _factory(StateURL.parse(self.url))

    @property
    def plain(self) -> MapStateFactory:
        """Makes states of values alone: a batch that runs twice counts twice."""
        url = StateURL.parse(self.url)
        return _factory(replace(url, options={**url.options, "kind": "nontransactional"}))


@contextmanager
def opened(text: str, folder: Path) -> Iterator[ChaosStore]:
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
        yield ChaosStore(text if url.path else _at(f"sqlite:{folder}/state.db", url))
    elif url.hosts:
        [place, *others] = url.hosts
        alone = url.scheme == "redis" and not others and url.password is None
        where = (place[0], place[1] or 6379) if alone and url.path in ("", "/0", "/") else None
        yield ChaosStore(text, where)
    else:
        from trident.chaos.servers import started

        with started(url.scheme, folder) as server:
            options = {"timeout": str(server.timeout or TIMEOUT), **server.options, **url.options}
            asked = StateURL(url.scheme, options=options)
            yield ChaosStore(_at(server.url, asked), server.redis, server.troubles)


def _at(place: str, url: StateURL) -> str:
    options = "&".join(f"{name}={value}" for name, value in url.options.items())
    return f"{place}?{options}" if options else place


def _factory(url: StateURL) -> MapStateFactory:
    factory = state_from_url(url)
    if not isinstance(factory, MapStateFactory):
        raise UsageError("--state: only map states can be compared, found", type(factory).__name__)
    return factory
