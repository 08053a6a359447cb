"""State on real servers: folding 100,000 counts into it, beside the raw client's get and put."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.raw import RAW, RawClient
from benchmarks.report import Figure, alternated, rate, throughput
from tests.backends_table import BACKENDS, Backend
from tests.states.abilities import FencedMap
from trident.operations.builtin import Count
from trident.states import CachedMap, ControlRecord, StateFactory, Token
from trident.states.kinds import PLAIN
from trident.states.table.build import layered
from trident.testing.servers.hbase import HBaseServer
from trident.testing.servers.memcached import MemcachedServer, MemcachedServers
from trident.testing.servers.postgres import PostgresServer
from trident.testing.servers.redis import RedisCluster, RedisServer

_KEYS = 100_000
_ROUNDS = 5
_SERVERS: dict[str, Callable[[Path], Any]] = {
    "redis_server": RedisServer,
    "redis_cluster": RedisCluster,
    "memcached_server": MemcachedServer,
    "memcached_servers": MemcachedServers,
    "hbase_server": HBaseServer,
    "postgres_server": PostgresServer,
}
_TARGETS = {
    "Redis strings": 0.55,
    "Redis hash": 0.55,
    "Redis expiring strings": 0.3,
    "Redis expiring hash": 0.4,
    "Redis cluster strings": 0.4,
    "Redis cluster hash": 0.4,
    "Memcached node": 0.6,
    "Memcached nodes": 0.6,
    "HBase": 0.6,
    "PostgreSQL": 0.6,
    "PostgreSQL shared table": 0.5,
    "PostgreSQL numbers": 0.9,
}
_WORDS = [f"word{number}" for number in range(_KEYS)]
random.Random(1).shuffle(_WORDS)
KEYS = [word.encode() for word in _WORDS]
VALUES = [b"[12,%d,%d]" % (number % 900, number % 870) for number in range(_KEYS)]
AMOUNTS = [1 + number % 50 for number in range(_KEYS)]


def figures(folder: Path) -> Iterator[Figure]:
    """Measure every backend that has a server, and the cache alone."""
    with ExitStack() as running:
        urls: dict[str, str] = {}
        for backend in BACKENDS:
            if backend.fixture not in _SERVERS:
                continue
            if backend.fixture not in urls:
                made = _SERVERS[backend.fixture](folder / backend.fixture)
                urls[backend.fixture] = running.enter_context(made).url
            yield from _figures(backend, urls)
    yield _cache()


def _figures(backend: Backend, urls: dict[str, str]) -> Iterator[Figure]:
    server = urls[backend.fixture]
    assert backend.extra is not None
    # A cluster is compared with one server: the raw client would need a command a slot.
    kind = RAW.get(backend.name) or RAW[backend.extra]
    raw = kind(urls["redis_server"] if backend.extra == "redis" else server)
    batches = _batches(backend.factory(server))
    by_hand, own = alternated(_ROUNDS, lambda: _by_hand(raw), lambda: next(batches))
    raw.close()
    batches.close()
    named = f"{backend.name}: 100,000 counts; raw"
    yield throughput(named, _KEYS, own, by_hand, target=_TARGETS[backend.name])


def _by_hand(raw: RawClient) -> None:
    raw.get(KEYS)
    raw.put(KEYS, VALUES)


def _batches(factory: StateFactory) -> Generator[None, None, None]:
    """Run one batch after the other, with all that one costs on the side of the store."""
    state: Any = factory.makeState()
    combiner = Count()
    try:
        for txid in range(1, 1_000):
            record = ControlRecord("a1", Token(txid, 0), txid - 1)
            state.control.begin(record)
            state.beginCommit(record)
            state.multiFold(KEYS, AMOUNTS, combiner)
            state.commit(record)
            state.control.announce(state.control.ready(record))
            yield
    finally:
        state.close()


def _cache() -> Figure:
    backing, record = CachedMap(FencedMap(), 2 * _KEYS), ControlRecord("a1", Token(1, 0))
    backing.putControl(record.encode(), None)
    cache = layered(backing, PLAIN).writing
    cache.begin(record)
    cache.write(KEYS, VALUES)
    [times] = alternated(_ROUNDS, lambda: cache.read(KEYS))
    return rate("reads that a cache answers", _KEYS, times, target=2_000_000)
