"""Sums of words in states of every kind: what the kept files hold, and how they are made.

    PYTHONPATH=<an earlier version> python tests/kept/word_sums.py <folder> <URL of Redis> killed

writes the files of a run that is killed, or one that has `ended`, with that version. The database
has to be empty, and is again afterwards. Nothing is used for `STATES` that the earlier versions
don't have; in their URLs `kind=` is `mode=`. `LATER` are there from 0.2.0 on.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing, nullcontext
from datetime import timedelta
from itertools import chain, product
from pathlib import Path
from typing import Any

from trident import FixedBatchSpout, Sum, TridentTopology
from trident.testing import fail_at, kill_at

Row = tuple[str | None, int | None, int]

BATCHES: list[list[Row]] = [
    [("cat", 1, 1), ("naïve ☃", 2, 2), (None, 1, 4), ("", None, 8), ("a\0b", 1, 16)],
    [("cat", 1, 32), (None, None, 64), ("mouse", 1, 128), ("🙂", 2, 256), ("", 2, 512)],
    [("cat", 2, 1024), ("naïve ☃", 2, 2048), (None, 1, 4096), ("new", 1, 8192), ("", 2, 16384)],
    [("cat", 1, 2**15), ("mouse", 1, 2**16), (None, None, 2**17), ("🙂", 2, 2**18), ("", 2, 2**19)],
    [("a\0b", 1, 2**20), (None, 1, 2**21), ("", None, 2**22), ("z", 3, 2**23), ("cat", 2, 2**24)],
]
"""Words, a second part of the key, and a number of which no other row has the bit: a sum tells
which rows are in it, and how often."""

FAILED = 2
"""The batch whose first attempt failed when it had written everything."""
LAST = 3
"""The last batch that the earlier version ran: to its end, or killed before its commit."""

STORES = ("sqlite", "string", "hash")
KINDS = ("opaque", "transactional", "nontransactional")
SERIALIZERS = ("json", "pickle")
KEYS: dict[str, list[str]] = {"words": ["word"], "pairs": ["word", "part"], "total": []}
STATES = {
    f"{kind}_{serializer}_{keys}": (kind, serializer, keys)
    for kind, serializer, keys in product(KINDS, SERIALIZERS, KEYS)
}
LATER = {
    f"opaque_{serializer}_words_{what}": ("opaque", serializer, "words")
    for what, serializer in product(("expiring", "versioned"), SERIALIZERS)
}
"""States whose values have a moment at which they end, or a version of their form."""
ALL = {**STATES, **LATER}
WINDOWS = {name: ("opaque", "json", name) for name in ("open", "ended")}
"""The open windows, and the table of those that have ended: four rows each, in order."""


class VersionedSum(Sum):
    """A sum whose second form is the first one."""

    schema_version = 2

    def upgrade(self, value: Any, version: int) -> Any:
        return value


def urls(store: str, place: str, prefix: str = "", later: bool = True) -> dict[str, str]:
    """The URLs of all states in a file, or in a database of Redis that others may use as well."""
    states = {**ALL, **WINDOWS} if later else STATES
    layout = "" if store == "sqlite" else f"&layout={store}"
    return {
        name: f"{place}?kind={kind}&serializer={serializer}&prefix={prefix}{name}{layout}"
        for name, (kind, serializer, _) in states.items()
    }


def run(urls: dict[str, str], checkpoint: Path, batches: list[list[Row]]) -> None:
    """Sum what the checkpoint has not committed of the batches, into all states at once."""
    topology = TridentTopology()
    spout = FixedBatchSpout("word string, part long, n long", len(batches[0]), *chain(*batches))
    rows = topology.newStream("rows", spout)
    for name, url in urls.items():
        if name in WINDOWS:
            continue
        fields = KEYS[ALL[name][2]]
        given: Any = rows.groupBy(*fields) if fields else rows
        total = VersionedSum() if name.endswith("versioned") else Sum()
        ends = {"expire_after": timedelta(days=36500)} if name.endswith("expiring") else {}
        given.persistentAggregate(url, "n", total, "sum", name=name, **ends)
    if "open" in urls:
        keep_windows(rows, urls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of states that can't be exact: they are here for that
        with topology.start(checkpoint=checkpoint, trigger="available") as going:
            going.awaitTermination(60)


def keep_windows(rows: Any, urls: dict[str, str]) -> None:
    """Sum each four rows: the bit of a row's number is its time."""
    from trident import TumblingDurationWindow

    four = TumblingDurationWindow.of(timedelta(milliseconds=4)).withTimestampField("at")
    timed = rows.each("n", lambda n: [n.bit_length() - 1], "at long")
    windows = timed.window(four, urls["open"], "n", Sum(), "sum", name="open")
    windows.persistWindows(urls["ended"], name="ended")


def run_first(store: str, place: str, checkpoint: Path, how: str) -> None:
    """What the earlier version does."""
    killed = kill_at("before commit", LAST) if how == "killed" else nullcontext()
    with fail_at("after write", FAILED), killed:
        run(urls(store, place), checkpoint, BATCHES[:LAST])


def dump_redis(database: Any) -> dict[str, Any]:
    """All of a database: strings as they are, hashes as objects; each character is a byte."""

    def text(data: bytes) -> str:
        return data.decode("latin-1")

    found: dict[str, Any] = {}
    for key in sorted(database.scan_iter(count=1000)):
        if database.type(key) == b"hash":
            fields = sorted(database.hgetall(key).items())
            found[text(key)] = {text(field): text(value) for field, value in fields}
        else:
            found[text(key)] = text(database.get(key))
    return found


def dump_sqlite(file: Path) -> dict[str, Any]:
    """The rows of each table, by the statement that makes it; a list holds the text of bytes."""

    def plain(value: Any) -> Any:
        return [value.decode("latin-1")] if isinstance(value, bytes) else value

    with closing(sqlite3.connect(file)) as database:
        tables = database.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {
            sql: [[*map(plain, row)] for row in database.execute(f'SELECT * FROM "{name}"')]
            for name, sql in tables.fetchall()
        }


def in_lines(found: dict[str, Any]) -> str:
    """JSON of a dump, with a line for each row."""

    def lines(rows: Any) -> str:
        if isinstance(rows, list):
            return "[\n  " + ",\n  ".join(map(json.dumps, rows)) + "\n ]"
        return json.dumps(rows, indent=1).replace("\n", "\n ")

    each = (f" {json.dumps(name)}: {lines(rows)}" for name, rows in found.items())
    return "{\n" + ",\n".join(each) + "\n}\n"


def keep(folder: Path, database_url: str, runs: list[str]) -> None:
    """Write the kept files of some runs into a folder."""
    import redis

    with closing(redis.Redis.from_url(database_url)) as database:
        for store, how in product(STORES, runs):
            assert not database.dbsize(), f"{database_url} is not empty"
            kept = folder / f"{store}-{how}"
            kept.mkdir(parents=True)
            file = kept / "states.db"
            place = f"sqlite:{file}" if store == "sqlite" else database_url
            words = [sys.executable, __file__, store, place, str(kept / "checkpoint"), how]
            ended = subprocess.run(words, check=False).returncode
            assert ended == (-signal.SIGKILL if how == "killed" else 0), ended
            (kept / "checkpoint" / ".lock").unlink()
            found = dump_sqlite(file) if store == "sqlite" else dump_redis(database)
            (kept / "states.json").write_text(in_lines(found))
            database.flushdb()
            for each in kept.glob("states.db*"):
                each.unlink()


if __name__ == "__main__":
    first, second, *rest = sys.argv[1:]
    if first in STORES:
        run_first(first, second, Path(rest[0]), rest[1])
    else:
        keep(Path(first), second, rest)
