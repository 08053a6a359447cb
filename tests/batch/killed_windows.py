"""Windows over a SQLite file, in a run that dies at a named point: ``folder point txid``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

from tests.topologies.capture import captured_in
from trident import (
    Duration,
    FixedBatchSpout,
    SessionWindow,
    SlidingCountWindow,
    SlidingDurationWindow,
    Sum,
    TextFileSpout,
    TridentTopology,
    TumblingDurationWindow,
)
from trident.backends import sqlite
from trident.testing import kill_at

_RANDOM = Random(4)
ROWS = [("ab"[n % 3 % 2], 3 * n - _RANDOM.randint(0, 12), n) for n in range(48)]
WINDOWS: dict[str, Any] = {
    "count": SlidingCountWindow.of(5, 2),
    "duration": SlidingDurationWindow.of(Duration.of(20), Duration.of(10))
    .withTimestampField("t")
    .withLag(Duration.of(4))
    .withLateness(Duration.of(6)),
    "session": SessionWindow.of(Duration.of(7)).withTimestampField("t"),
    "merged": TumblingDurationWindow.of(Duration.of(10)).withTimestampField("t"),
}


def written(folder: Path) -> str:
    """Two files of later and later times, three of each a batch."""
    folder.mkdir(exist_ok=True)
    for number in range(2):
        times = range(100 + 24 * number, 124 + 24 * number)
        (folder / f"{number}.txt").write_text("".join(f"{time}\n" for time in times))
    return str(folder / "*.txt")


def run(folder: Path) -> dict[str, list[list[tuple[Any, ...]]]]:
    """Run what is left, eight batches in all; return what each batch has ended."""
    topology = TridentTopology()
    spout = FixedBatchSpout("k string, t long, v long", 6, *ROWS)
    stream = topology.newStream("values", spout)
    lines = topology.newStream("lines", TextFileSpout(written(folder / "lines"), batch_bytes=12))
    more = lines.map(lambda line: ("c", int(line), 1), "k string, t long, v long")
    captured = {}
    for name, window in WINDOWS.items():
        store = sqlite.opaque(str(folder / "windows.db"), name)
        given = topology.merge(stream, more) if name == "merged" else stream
        made = given.groupBy("k").window(window, store, "v", Sum(), "sum", name=name)
        captured[name] = captured_in(folder / f"of {name}", made)
    with topology.start(checkpoint=folder / "checkpoint", trigger="available") as started:
        started.awaitTermination(60)
    return {name: kept.batches for name, kept in captured.items()}


if __name__ == "__main__":
    folder, point, txid = sys.argv[1:]
    with kill_at(point, int(txid)) if point else nullcontext():
        run(Path(folder))
