"""The backends: one row each, from which conformance and benchmarks are made."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from trident.backends.urls import state_from_url
from trident.states import Ability, IBackingMap
from trident.states.maps.factory import MapStateFactory
from trident.states.values import StateType
from trident.testing.servers.process import QUICK


@dataclass(frozen=True)
class Backend:
    """A backend, on a server of its kind.

    Parameters
    ----------
    name : str
        As in the ids of tests; words.
    url : str
        The URL of a state, with ``{server}`` where the server is, ``{own}`` for what tells it from
        any other, and ``{kind}`` for what it keeps.
    fixture : str
        The one whose ``url`` is the server.
    abilities : frozenset of Ability
        What its map can do.
    extra : str or None
        The extra of this project that brings its driver.
    runs : int
        How often the suite plays what it draws by lot.
    values : type or None
        The only type of values that it keeps, where it doesn't keep all.
    variant_of : str or None
        A row that differs from it in no more than how entries are put, which its backend's own
        tests check. The suite runs on that one alone.
    """

    name: str
    url: str
    fixture: str
    abilities: frozenset[Ability]
    extra: str | None = None
    runs: int = 8
    values: type | None = None
    variant_of: str | None = None

    @property
    def words(self) -> str:
        """The name, as a part of a class's."""
        return "".join(word[0].upper() + word[1:] for word in self.name.split())

    def factory(self, server: str, kind: StateType = StateType.OPAQUE) -> MapStateFactory:
        """Return the factory of an empty state of its own."""
        word = kind.value.replace("-", "")
        place = self.url.format(server=server, own=uuid4().hex, kind=word)
        factory: Any = state_from_url(f"{place}&kind={word}")
        assert isinstance(factory, MapStateFactory)
        return factory

    def open(self, server: str, kind: StateType = StateType.OPAQUE) -> IBackingMap:
        """Open the map of an empty state of its own."""
        return self.factory(server, kind).store.open()


_ENTRY = frozenset({Ability.ENTRY})
_FENCED = frozenset({Ability.FENCED, Ability.REMOVE, Ability.LIST, Ability.LOOK})
_DROPPED = _FENCED | {Ability.DROP}
_POSTGRES = _DROPPED | {Ability.SNAPSHOT, Ability.TOGETHER, Ability.MOVE}
_CLUSTER = _FENCED - {Ability.LIST, Ability.LOOK}


_ALL = [
    Backend("memory", "{server}{own}?prefix=", "memory", _FENCED),
    Backend(
        "SQLite",
        "{server}/{own}.db?prefix=counts",
        "sqlite",
        _DROPPED | {Ability.ADD, Ability.SNAPSHOT},
    ),
    Backend(
        "Redis strings",
        "{server}?prefix={own}",
        "redis_server",
        _DROPPED,
        "redis",
    ),
    Backend(
        "Redis hash",
        "{server}?prefix={own}&layout=hash",
        "redis_server",
        _DROPPED,
        "redis",
        variant_of="Redis cluster hash",
    ),
    Backend(
        "Redis expiring strings",
        "{server}?prefix={own}&ttl=1000",
        "redis_server",
        _DROPPED,
        "redis",
        variant_of="Redis strings",
    ),
    Backend(
        "Redis expiring hash",
        "{server}?prefix={own}&layout=hash&ttl=1000",
        "redis_server",
        _DROPPED,
        "redis",
    ),
    Backend(
        "Redis cluster strings",
        "{server}?prefix={own}&partitions=7",
        "redis_cluster",
        _CLUSTER,
        "redis",
    ),
    Backend(
        "Redis cluster hash",
        "{server}?prefix={own}&layout=hash&partitions=16",
        "redis_cluster",
        _CLUSTER,
        "redis",
    ),
    Backend(
        "Memcached node",
        "{server}?prefix={own}",
        "memcached_server",
        _ENTRY,
        "memcached",
    ),
    Backend("Memcached nodes", "{server}?prefix={own}", "memcached_servers", _ENTRY, "memcached"),
    Backend(
        "HBase",
        "{server}/trident/states?timeout=60&prefix={own}",
        "hbase_server",
        frozenset({Ability.VERSIONED, Ability.EXPIRE, Ability.LOOK}),
        "hbase",
        runs=4,
    ),
    Backend(
        "PostgreSQL",
        "{server}?prefix={own}",
        "postgres_server",
        _POSTGRES,
        "postgres",
    ),
    Backend(
        "PostgreSQL shared table",
        "{server}?prefix={own}&table=states-{kind}",
        "postgres_server",
        _POSTGRES,
        "postgres",
        runs=4,
    ),
    Backend(
        "PostgreSQL numbers",
        "{server}?prefix={own}&values=bigint",
        "postgres_server",
        _POSTGRES | {Ability.ADD},
        "postgres",
        values=int,
    ),
    Backend(
        "PostgreSQL behind PgBouncer",
        "{server}?prefix={own}",
        "pgbouncer",
        _POSTGRES,
        "postgres",
        runs=2,
    ),
]

BACKENDS = [row for row in _ALL if row.extra is None] if QUICK in os.environ else _ALL
"""The rows that this run tests: a quick run would only skip those that have a server."""
