"""A run that goes on: what a word costs stays, and nothing that the process holds grows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sizes.cases import Case
from benchmarks.sizes.ours import TimedSpout, engine, state
from benchmarks.sizes.setting import UNTIMED, Setting, Text
from benchmarks.topologies import word_count
from trident import Fields, IBatchSpout, TridentCollector

_FLAT_WORDS = 20_000
_FIRST_MARK = 100_000
_STEADY_WORDS = 100


@dataclass(frozen=True)
class Cost:
    """What a word cost in one part of a run: `seconds`, up to the word numbered `upto`."""

    upto: int
    seconds: float


@dataclass(frozen=True)
class Held:
    """What the process held after so many batches of a contender, in bytes and open files."""

    contender: str
    batches: int
    resident: int
    checkpoint: int
    database: int
    files: int


def costs(setting: Setting) -> Sequence[Cost]:
    """Count ever more words on the local engine into SQLite: 10⁵, ten times as many, and so on."""
    case = Case("local", "SQLite", _FLAT_WORDS)
    most = setting.effort.flat_to // _FLAT_WORDS
    spout = TimedSpout(setting.text(case.keys), case.words, 0.0, fewest=most)
    with setting.place() as place:
        topology = word_count(spout, "line", state(setting, case, place))
        with topology.start(checkpoint=place.checkpoint, trigger="available") as run:
            run.awaitTermination()
    found, start, mark = [], 0, _FIRST_MARK
    while mark <= setting.effort.flat_to:
        part = spout.batches[start : mark // _FLAT_WORDS]
        found.append(Cost(mark, sum(part) / len(part) / _FLAT_WORDS))
        start, mark = mark // _FLAT_WORDS, 10 * mark
    return found


def held(setting: Setting) -> Iterator[Held]:
    """Run many small batches into SQLite, and look after a tenth of them and after all."""
    for contender in setting.effort.steady:
        yield from _held(setting, Case(contender, "SQLite", _STEADY_WORDS))


def _held(setting: Setting, case: Case) -> Sequence[Held]:
    found: list[Held] = []
    with setting.place() as place:

        def look(batches: int) -> None:
            files = place.folder.glob(f"{place.database.name}*")
            database = sum(path.stat().st_size for path in files)
            sizes = _resident(), _size(place.checkpoint), database, _open_files()
            found.append(Held(case.contender, batches, *sizes))

        most = setting.effort.steady_batches
        spout = _Endless(setting.text(case.keys), most, (most // 10, most), look)
        topology = word_count(spout, "line", state(setting, case, place))
        options = engine(setting, case.contender)
        with topology.start(checkpoint=place.checkpoint, trigger="available", **options) as run:
            run.awaitTermination()
    return found


class _Endless(IBatchSpout):
    """Emits many batches, keeps nothing of them, and calls `look` after some."""

    kind = "transactional"

    def __init__(
        self, text: Text, most: int, marks: Sequence[int], look: Callable[[int], None]
    ) -> None:
        self._text = text
        self._most = most
        self._marks = marks
        self._look = look

    def isReady(self, batchId: int) -> bool:
        return batchId <= UNTIMED + self._most

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        collector.emitColumns({"line": self._text.batch(batchId - 1, _STEADY_WORDS)})

    def ack(self, batchId: int) -> None:
        if batchId - UNTIMED in self._marks:
            self._look(batchId - UNTIMED)

    def getOutputFields(self) -> Fields:
        return Fields.of("line string")


def _resident() -> int:
    """The bytes of this process that are in memory; not those of Spark's JVM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def _size(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
