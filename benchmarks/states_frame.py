"""A state of a million keys as a DataFrame, beside the same rows read by hand in one process."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from redis import Redis

from benchmarks.report import Figure, alternated, throughput
from trident import states_frame
from trident.backends import redis, sqlite
from trident.spark import local_session
from trident.testing.servers.redis import RedisServer

_KEYS = 1_000_000


def figures(folder: Path) -> Iterator[Figure]:
    """Measure both stores, each after a read that isn't counted."""
    with RedisServer(folder / "redis") as server, Redis(port=server.port) as client:

        def mget() -> list[Any]:
            keys = list(client.scan_iter("s:word*", 1000))
            parts = [keys[at : at + 1000] for at in range(0, _KEYS, 1000)]
            values = [orjson.loads(entry)[1] for part in parts for entry in client.mget(part)]
            return [(key[2:].decode(), value) for key, value in zip(keys, values, strict=True)]

        state = redis.opaque(port=server.port, prefix="s")
        yield _pair("Redis as a DataFrame; SCAN and MGET", state, mget)

    def select() -> list[Any]:
        with closing(sqlite3.connect(folder / "s.db")) as file:
            return file.execute("SELECT key, curr FROM s").fetchall()

    yield _pair("SQLite as a DataFrame; SELECT", sqlite.opaque(folder / "s.db", "s"), select)


def _pair(name: str, factory: Any, read: Callable[[], list[Any]]) -> Figure:
    spark = local_session()
    with closing(factory.makeState()) as state:
        state.beginCommit(1)
        state.multiPut([(f"word{number}",) for number in range(_KEYS)], range(_KEYS))
        state.commit(1)

    def count() -> None:
        assert states_frame(spark, factory, "word string, n long").count() == _KEYS

    def by_hand() -> None:
        words, numbers = zip(*read(), strict=True)
        assert spark.createDataFrame(pa.table({"word": words, "n": numbers})).count() == _KEYS

    ours, baseline = alternated(3, count, by_hand)
    return throughput(name, _KEYS, ours, baseline, target=0.5)
