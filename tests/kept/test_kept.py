"""Stores and checkpoints of earlier versions are gone on from, and come to the right sums."""

from __future__ import annotations

import json
import re
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

from tests.kept.word_sums import (
    ALL,
    BATCHES,
    FAILED,
    KEYS,
    LAST,
    Row,
    dump_sqlite,
    in_lines,
    run,
    urls,
)
from trident.backends.urls import state_from_url
from trident.testing import fail_at

KEPT = sorted(path.parent for path in Path(__file__).parent.glob("*/*/states.json"))
OTHER: list[Row] = [("cat", 1, 3), ("else", 1, 5), ("naïve ☃", 2, 7), (None, None, 9), ("", 2, 11)]
"""With which a batch comes back that was killed."""

NEWEST = Path(__file__).parent / "version_0_2_0"
"""What is written now; the folders before it have no `LATER` states."""
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

    @property
    def opaque(self) -> list[str]:
        return [name for name in self.sums_of if ALL[name][0] == "opaque"]

    @property
    def sums_of(self) -> list[str]:
        """The states of sums: the other ones are of windows."""
        return [name for name in self.urls if name in ALL]

    def windows(self) -> dict[tuple[int, int], int]:
        """The sums of the windows that have ended, by begin and end."""
        state: Any = state_from_url(self.urls["ended"]).makeState()
        with closing(state):
            return {(begin, end): total for begin, end, total in state.getTuples()}

    def sums(self, name: str) -> Sums:
        """All that a reader finds in a state; the single sum is under no key."""
        state: Any = state_from_url(self.urls[name]).makeState()
        with closing(state):
            if not KEYS[ALL[name][2]]:
                return {(): state.get()}
            return {(*key,): value for *key, value in state.getTuples()}


def identify(kept: Path) -> str:
    return " ".join(kept.parts[-2:]).replace("_", " ").replace("-", " ")


@pytest.fixture(params=KEPT, ids=identify)
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Left:
    kept: Path = request.param
    store, later = kept.name.partition("-")[0], kept.parent == NEWEST
    states = json.loads((kept / "states.json").read_text())
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(kept / "checkpoint", checkpoint)
    if store == "sqlite":
        restore_sqlite(tmp_path / "states.db", states)
        place = f"sqlite:{tmp_path / 'states.db'}"
        return Left(kept, checkpoint, urls(store, place, later=later))
    server, prefix = request.getfixturevalue("redis_server"), f"{uuid4().hex}_"
    restore_redis(server.url, prefix, states)
    return Left(kept, checkpoint, urls(store, server.url, prefix, later))


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
        found[row[: len(KEYS[ALL[name][2]])]] += row[-1]
    return dict(found)


def test_what_earlier_versions_left_is_gone_on_from(left: Left) -> None:
    """A plain value counts a batch again that ran again; nothing else does."""
    run(left.urls, left.checkpoint, BATCHES)
    again = [BATCHES[FAILED - 1], *([BATCHES[LAST - 1]] if left.was_killed else [])]
    assert {name: left.sums(name) for name in left.sums_of} == {
        name: summed([*BATCHES, *again] if ALL[name][0] == "nontransactional" else BATCHES, name)
        for name in left.sums_of
    }


@pytest.mark.parametrize("left", sorted(NEWEST.glob("*")), ids=identify, indirect=True)
def test_windows_that_an_earlier_version_left_open_end(left: Left) -> None:
    """Each has the rows before and after, once; the last one is still open."""
    run(left.urls, left.checkpoint, BATCHES)
    ns = [n for _, _, n in chain(*BATCHES)]
    assert left.windows() == {(at, at + 4): sum(ns[at : at + 4]) for at in range(0, len(ns) - 4, 4)}


def test_an_opaque_batch_of_theirs_may_come_back_with_other_rows(left: Left) -> None:
    batches = [*BATCHES[: LAST - 1], OTHER, *BATCHES[LAST:]]
    run(left.urls, left.checkpoint, batches)
    counted = batches if left.was_killed else BATCHES
    for name in left.opaque:
        assert left.sums(name) == summed(counted, name)


def test_a_reader_finds_the_batches_that_they_committed(left: Left) -> None:
    counted = BATCHES[: LAST - 1 if left.was_killed else LAST]
    for name in left.opaque:
        assert left.sums(name) == summed(counted, name)


def test_what_is_written_now_is_kept_here(tmp_path: Path) -> None:
    """Where it changes, later versions need it in a folder of its own: see README.md."""
    file, checkpoint = tmp_path / "states.db", tmp_path / "checkpoint"
    with fail_at("after write", FAILED):
        run(urls("sqlite", f"sqlite:{file}"), checkpoint, BATCHES[:LAST])
    kept = NEWEST / "sqlite-ended"
    assert form(in_lines(dump_sqlite(file))) == form((kept / "states.json").read_text())
    assert entries(checkpoint) == entries(kept / "checkpoint")


def entries(checkpoint: Path) -> dict[str, str]:
    """The form of each file of a log."""
    logs = (path for path in checkpoint.rglob("*.json"))
    return {str(path.relative_to(checkpoint)): form(path.read_text()) for path in logs}


def form(text: str) -> str:
    """A text without what differs from run to run: ids, checksums, moments, also pickled ones."""
    ids = r"\b(?:\d+-)?[0-9a-f]{8}\b|\b[0-9a-f]{16}\b"
    moments = r"\b\d{13}\b|\d{4}-\d\d-\d\dT[\d:.]+Z|(?<=KeepUntil).*"
    return re.sub(f"{ids}|{moments}", "…", text)
