"""A word count of staged batches, into SQLite files: ``folder point txid``, where it dies.

The clock keeps a log as Structured Streaming does: what each batch covers is there before the batch
is run, and that it is done after it has returned. It asks again for the last batch only.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trident import Count
from trident.backends import sqlite
from trident.batch.computed import Computed
from trident.batch.opening import LogTerms
from trident.batch.outcome import Outcome
from trident.batch.progress import BatchProgress
from trident.batch.runner import BatchRunner
from trident.batch.staged import StagedBatches
from trident.batch.states import BatchState
from trident.batch.watchpoints import reached, watching
from trident.log.file_log import FileLog
from trident.log.folders import Folder
from trident.log.staging import StagingArea
from trident.states.control import ControlRecord
from trident.states.state import State
from trident.states.updaters import CombinerValueUpdater
from trident.states.values import Token

TEXT = ("the cow jumped over the moon the man went to the store " * 5).split()
EXPECTED = Counter(TEXT)
EACH = 4
"""The words of a batch."""
BATCHES = -(-len(TEXT) // EACH)
PENDING = 3
CLOCK_POINTS = ("before the clock's commit", "after the clock's commit")
REPLAYED = "a batch comes back"
"""The clock waits for its commit: meanwhile the next one is not staged."""


@dataclass(frozen=True)
class Words(Computed):
    """The words of a batch, and one that is drawn anew whenever it is computed."""

    words: tuple[str, ...] = ()
    draw: str = ""


class Engine:
    """Counts words in two states: of the second nothing that was written can be taken back."""

    def __init__(self, states: Mapping[str, State]) -> None:
        self._states = states

    def compute(self, txid: int) -> Words:
        words = tuple(TEXT[EACH * (txid - 1) : EACH * txid])
        return Words((), Outcome(), words, uuid.uuid4().hex)

    def write(self, record: ControlRecord, computed: Computed) -> Outcome:
        assert isinstance(computed, Words)
        for name, keys in (("count", computed.words), ("drawn", (computed.draw,))):
            state: Any = self._states[name]
            state.beginCommit(record)
            state.multiUpdate(
                [[key] for key in keys], [CombinerValueUpdater(Count(), 1)] * len(keys)
            )
            state.commit(record)
        return Outcome(tuples=len(computed.words))

    def packed(self, computed: Computed) -> Mapping[str, bytes | memoryview]:
        assert isinstance(computed, Words)
        return {"words": json.dumps([computed.words, computed.draw]).encode()}

    def unpacked(self, parts: Mapping[str, bytes | memoryview]) -> Computed:
        words, draw = json.loads(bytes(parts["words"]))
        return Words((), Outcome(), tuple(words), draw)


def done(folder: Path) -> int:
    """The last batch that the clock knows to be done."""
    path = folder / "done"
    return len(path.read_text()) if path.exists() else 0


def run(folder: Path, most: int = PENDING) -> None:
    """Run what is left."""
    states = {
        "count": sqlite.opaque(folder / "counts.db", "count").makeState(),
        "drawn": sqlite.transactional(folder / "counts.db", "drawn").makeState(),
    }
    engine = Engine(states)
    runner = BatchRunner(
        FileLog(folder / "log"),
        {name: BatchState(state) for name, state in states.items()},
        group="lines",
    )
    runner.open(LogTerms(streams={"lines": "line"}, clock="dataframe"))
    failures: list[BaseException] = []

    def told(progress: BatchProgress | None, failure: BaseException | None) -> None:
        if failure is not None:
            failures.append(failure)

    batches = StagedBatches(StagingArea(Folder(folder / "staged")), engine, runner, most, told)
    batches.open(done(folder))
    for txid in range(done(folder) + 1, BATCHES + 1):
        digest = hashlib.sha256(b"%d" % txid).hexdigest()
        if txid != batches.next_txid:
            reached(REPLAYED, Token(txid, 0))
        batches.run(txid, digest, "query", lambda record: engine.compute(record.token.txid))
        reached(CLOCK_POINTS[0], Token(txid, 0))
        with (folder / "done").open("a") as file:
            file.write(".")
        reached(CLOCK_POINTS[1], Token(txid, 0))
    batches.close()
    for state in states.values():
        state.close()
    assert not failures, failures


def counts(folder: Path) -> dict[str, int]:
    """What the first state holds when all of its batches are committed."""
    with closing(sqlite3.connect(folder / "counts.db")) as file:
        return dict(file.execute("SELECT key, curr FROM count WHERE curr IS NOT NULL"))


def draws(folder: Path) -> list[int]:
    """How often each drawn word was counted."""
    with closing(sqlite3.connect(folder / "counts.db")) as file:
        return [count for (count,) in file.execute("SELECT value FROM drawn")]


def main(folder: Path, point: str, txid: int) -> None:
    """Run what is left; die at a point of a batch, with the next one staged if it can be."""
    staged = threading.Condition()
    last = 0

    def watch(passed: str, token: Token) -> None:
        nonlocal last
        if passed in ("after stage", REPLAYED):
            with staged:
                last = token.txid + (passed == REPLAYED)
                staged.notify_all()
        if (passed, token.txid) != (point, txid):
            return
        if threading.current_thread() is not threading.main_thread():
            with staged:
                staged.wait_for(lambda: last > txid, 30)
        os.kill(os.getpid(), signal.SIGKILL)

    with watching(watch) if point else nullcontext():
        run(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
