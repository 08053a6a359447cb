"""A word count whose batches overlap, into a SQLite file; run as ``python -m``.

It is told a folder, the engine, and the point of a batch where it dies.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections import Counter
from contextlib import closing, nullcontext
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

from trident import Count, Function, Split, TridentTopology
from trident.backends import sqlite
from trident.batch.watchpoints import POINTS
from trident.operations.interfaces import TridentCollector
from trident.spouts.interfaces import BatchCoordinator, Emitter, ITridentSpout, SpoutKind
from trident.states.values import Token
from trident.testing import kill_at
from trident.tuples.fields import Fields

LINE = "the cow jumped over the moon the man went to the store "
TEXT = (LINE * 3 + "here " + LINE * 2).split()
EXPECTED = Counter(TEXT)
WORDS = 8
PENDING = 4


class Words(ITridentSpout, BatchCoordinator, Emitter):
    """Emits the text from where the metadata says; an attempt other than the first takes more."""

    kind: SpoutKind  # type: ignore[misc]

    def __init__(self, kind: SpoutKind = "opaque") -> None:
        self.kind = kind  # type: ignore[misc]
        self.calls: list[tuple[str, int]] = []
        self._next = 0
        self._emissions = 0

    def getCoordinator(self, txStateId: str, conf: Any, context: Any) -> Words:
        return self

    def getEmitter(self, txStateId: str, conf: Any, context: Any) -> Words:
        return self

    def isReady(self, txid: int) -> bool:
        return self._next < len(TEXT) or txid == 1

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        start = prevMetadata[1] if prevMetadata else 0
        return [start, start + WORDS]

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        self.calls.append(("emit", token.txid))
        start, end = metadata or (0, 0)
        if self.kind == "opaque":
            self._emissions += 1
            start, end = end, end + WORDS - 1 + self._emissions % 3
        for word in TEXT[start:end]:
            collector.emit([word])
        self._next = end
        return [start, end]

    def success(self, token: Any) -> None:
        if isinstance(token, Token):
            self.calls.append(("success", token.txid))

    def close(self) -> None:
        pass

    def getOutputFields(self) -> Fields:
        return Fields.of("line string")


def topology(folder: Path, spout: ITridentSpout, split: Any = None) -> TridentTopology:
    """Count the words of `spout`."""
    counted = TridentTopology()
    words = counted.newStream("lines", spout).each("line", split or Split(), "word string")
    words.groupBy("word").persistentAggregate(sqlite.opaque(folder / "counts.db"), Count(), "count")
    return counted


def counts(folder: Path) -> dict[str, int]:
    """What the state holds when all of its batches are committed."""
    with closing(sqlite3.connect(folder / "counts.db")) as file:
        return dict(file.execute("SELECT key, curr FROM count WHERE curr IS NOT NULL"))


class Deadly(Function):
    """Passes words on, and kills a process at the word "here", from wherever it runs."""

    def __init__(self, process: int) -> None:
        self.process = process

    def execute(self, tuple: Any, collector: TridentCollector) -> None:
        if tuple[0] == "here":
            os.kill(self.process, signal.SIGKILL)
        collector.emit([tuple[0]])


def run(folder: Path, engine: str, session: Any = None, split: Any = None) -> None:
    """Run what is left; the mixed engine runs every other batch on Spark."""
    spout = Words("transactional" if folder.name.startswith("transactional") else "opaque")
    turns = cycle(["local", "spark"])
    chosen = "trident.spark.mixed_engine.Costs.choose"
    with (
        patch(chosen, lambda *_: next(turns)) if engine == "mixed" else nullcontext(),
        topology(folder, spout, split).start(
            session,
            folder / "checkpoint",
            trigger="available",
            max_pending=PENDING,
            engine="spark" if engine == "spark" else "auto",
        ) as started,
    ):
        started.awaitTermination(120)


def main(folder: Path, engine: str, point: str, txid: int) -> None:
    """Run what is left; die at `point` of `txid`, or while a batch is computed."""
    split = Deadly(os.getpid()) if point == "compute" else None
    with kill_at(point, txid) if point in POINTS else nullcontext():
        run(folder, engine, None if engine == "local" else _session(), split)


def _session() -> Any:
    from trident.spark import local_session

    return local_session(**{"spark.master": "local[2]"})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
