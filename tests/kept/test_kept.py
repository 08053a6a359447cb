"""Stores and checkpoints of earlier versions are gone on from, and come to the right sums."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from redis import Redis

from tests.kept.word_sums import BATCHES, FAILED, KEYS, LAST, STATES, Row, run, urls
from trident.backends.urls import state_from_url

KEPT = sorted(path.parent for path in Path(__file__).parent.glob("*/*/states.json"))
OTHER: list[Row] = [("cat", 1, 3), ("else", 1, 5), ("naïve ☃", 2, 7), (None, None, 9), ("", 2, 11)]
"""With which a batch comes back that was killed."""

OPAQUE = [name for name, (kind, _, _) in STATES.items() if kind == "opaque"]
Sums = dict[tuple[Any, ...], int]


@dataclass(frozen=True)
class Left:
    """What an earlier version left, copied to where the present one goes on from it."""

    kept: Path
    checkpoint: Path
    urls: dict[str, str]

    @property
    def was_killed(self) -> bool:
        return self.kept.name.endswith("-killed")

    def sums(self, name: str) -> Sums:
        """All that a reader finds in a state; the single sum is under no key."""
        state: Any = state_from_url(self.urls[name]).makeState()
        with closing(state):
            if not KEYS[STATES[name][2]]:
                return {(): state.get()}
            return {(*key,): value for *key, value in state.getTuples()}


def identify(kept: Path) -> str:
    return " ".join(kept.parts[-2:]).replace("_", " ").replace("-", " ")


@pytest.fixture(params=KEPT, ids=identify)
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Left:
    kept: Path = request.param
    store = kept.name.partition("-")[0]
    states = json.loads((kept / "states.json").read_text())
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(kept / "checkpoint", checkpoint)
    if store == "sqlite":
        restore_sqlite(tmp_path / "states.db", states)
        return Left(kept, checkpoint, urls(store, f"sqlite:{tmp_path / 'states.db'}"))
    server, prefix = request.getfixturevalue("redis_server"), f"{uuid4().hex}_"
    restore_redis(server.url, prefix, states)
    return Left(kept, checkpoint, urls(store, server.url, prefix))


def restore_sqlite(file: Path, tables: dict[str, list[list[Any]]]) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        for sql, rows in tables.items():
            database.execute(sql)
            name = sql.split()[2]
            for row in rows:
                places = ", ".join("?" * len(row))
                database.execute(f"INSERT INTO {name} VALUES ({places})", [*map(stored, row)])


def stored(value: Any) -> Any:
    return value[0].encode("latin-1") if isinstance(value, list) else value


def restore_redis(url: str, prefix: str, keys: dict[str, Any]) -> None:
    with closing(Redis.from_url(url)) as database:
        for key, value in keys.items():
            name = f"{prefix}{key}".encode("latin-1")
            if isinstance(value, str):
                database.set(name, value.encode("latin-1"))
            else:
                for field, held in value.items():
                    database.hset(name, field.encode("latin-1"), held.encode("latin-1"))


def summed(batches: Iterable[list[Row]], name: str) -> Sums:
    """What batches come to, by the fields that a state groups by."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in chain(*batches):
        found[row[: len(KEYS[STATES[name][2]])]] += row[-1]
    return dict(found)


def test_what_earlier_versions_left_is_gone_on_from(left: Left) -> None:
    """A plain value counts a batch again that ran again; nothing else does."""
    run(left.urls, left.checkpoint, BATCHES)
    again = [BATCHES[FAILED - 1], *([BATCHES[LAST - 1]] if left.was_killed else [])]
    assert {name: left.sums(name) for name in STATES} == {
        name: summed([*BATCHES, *again] if kind == "nontransactional" else BATCHES, name)
        for name, (kind, _, _) in STATES.items()
    }


def test_an_opaque_batch_of_theirs_may_come_back_with_other_rows(left: Left) -> None:
    batches = [*BATCHES[: LAST - 1], OTHER, *BATCHES[LAST:]]
    run(left.urls, left.checkpoint, batches)
    counted = batches if left.was_killed else BATCHES
    for name in OPAQUE:
        assert left.sums(name) == summed(counted, name)


def test_a_reader_finds_the_batches_that_they_committed(left: Left) -> None:
    counted = BATCHES[: LAST - 1 if left.was_killed else LAST]
    for name in OPAQUE:
        assert left.sums(name) == summed(counted, name)
