"""The same on Spark: drivers with a JVM and Python workers, which are killed as well.

Run as ``python -m`` it is such a driver.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from trident.api.topology import TridentTopology
from trident.batch.watchpoints import reached
from trident.chaos.by_hand import CountedByHand
from trident.chaos.contender import (
    Contender,
    EpisodePlace,
    OwnSpout,
    RunTopology,
    WordSource,
)
from trident.chaos.process import STARTING, Fate, Life, Process, run_to_end
from trident.chaos.record import Record
from trident.chaos.rounds import Episode
from trident.chaos.servers import Trouble, restart
from trident.chaos.ways import MOST, Way
from trident.states.errors import UsageError
from trident.states.maps.factory import MapStateFactory
from trident.states.values import Token
from trident.testing.servers.connect import ConnectServer

# A task whose worker was killed is tried again, more often than workers are killed.
_SETTINGS = {"spark.master": "local[2,16]", "spark.sql.shuffle.partitions": "2"}
_MAX_PASSES = 3
_MAX_WORKERS = 24
_PATIENCE = 300.0
_RESTARTED = "Connect server restarted"


@dataclass(frozen=True)
class FrameWords(WordSource):
    """A streaming DataFrame of text files, one a batch."""

    record: Record
    most: int

    def before(self, place: EpisodePlace) -> None:
        folder = self._folder(place)
        folder.mkdir()
        choose = random.Random(place.seed)
        start = 0
        while start < self.record.length:
            end = start + choose.randint(1, self.most)
            file = folder / f"{start:06}.txt"
            file.write_text("".join(f"{word}\n" for word in self.record.words[start:end]))
            os.utime(file, (start, start))  # by which Spark puts them in order
            start = end

    def make(self, place: EpisodePlace, life: int) -> Any:
        reading = session().readStream.option("maxFilesPerTrigger", 1)
        return reading.text(str(self._folder(place))).withColumnRenamed("value", "word")

    def _folder(self, place: EpisodePlace) -> Path:
        return place.folder / "words"


@dataclass(frozen=True)
class RunOnSpark:
    """Runs all batches of a topology on Spark, through Spark Connect if there is a `server`."""

    server: str = ""

    def __call__(self, topology: TridentTopology, options: Mapping[str, Any], life: Life) -> None:
        own = {"trigger": "available", "engine": "spark"}
        with topology.start(session(self.server), **{**options, **own}) as run:
            run.awaitTermination()


@dataclass(frozen=True)
class ForeachBatchByHand(CountedByHand):
    """``foreachBatch`` as it is written by hand: Spark notes a batch when its function returns."""

    source: FrameWords
    points = ("before write", "after write")  # type: ignore[assignment]
    name = "foreachBatch that reads, adds and puts"

    def before(self, place: EpisodePlace) -> None:
        self.source.before(place)

    def drive(self, place: EpisodePlace, life: Life) -> None:
        counters = self.counters(place)

        def add(frame: Any, batch: int) -> None:
            token = Token(batch + 1, 0)
            words = Counter({row[0]: row[1] for row in frame.groupBy("word").count().collect()})
            reached("before write", token)
            counters.add({**words, "": words.total()})
            reached("after write", token)

        writing = self.source.make(place, life.number).writeStream.foreachBatch(add)
        writing = writing.option("checkpointLocation", str(place.checkpoint))
        writing.trigger(availableNow=True).start().awaitTermination()


class WithJVM(Process):
    """The process of a driver on Spark; its JVM and workers are stopped and continued with it.

    A driver that stops itself at a point leaves them at work.
    """

    _below: Sequence[tuple[int, str]] = ()

    def stop(self) -> None:
        self._below = [*below(self.pid)]
        self._send_all(signal.SIGSTOP)
        super().stop()

    def resume(self) -> None:
        self._send_all(signal.SIGCONT)
        super().resume()

    def leave_workers(self) -> None:
        """Continue its workers alone, as those of an executor that is cut off from all others."""
        self._below = [*below(self.pid)]
        # Their daemon would end them as soon as it is without a JVM.
        self._send_all(signal.SIGKILL, "daemon")
        self._send_all(signal.SIGKILL, "JVM")
        super().close()
        self._send_all(signal.SIGCONT, "worker")

    def close(self) -> None:
        super().close()
        self._send_all(signal.SIGCONT)  # a stopped JVM would never notice the end of its driver

    def _send_all(self, number: signal.Signals, only: str = "") -> None:
        for pid, is_a in self._below:
            with suppress(ProcessLookupError):
                if only in ("", is_a):
                    os.kill(pid, number)


@dataclass
class SparkEpisode(Episode):
    """An episode whose drivers have processes below them."""

    _process_class = WithJVM

    _take_over_share = _trouble_share = 0.3  # there are fewer rounds

    _stop_anywhere_share = 0.7  # where workers may be at work

    _cut_off_share: ClassVar[float] = 0.5
    """The share of drivers that are dead when their workers go on, of those taken over."""

    _jvm_share: ClassVar[float] = 0.5
    """The share of drivers that lose their JVM, of those killed at any moment."""

    def _drive(self, life: Life) -> None:
        be_program(self.contender, self.place, life)

    def _kill(self, driver: Process) -> bool:
        self._wait_at_work(driver)
        for _ in range(self.choose.randint(1, _MAX_WORKERS)):
            self.tally.kills["Python worker"] += self._kill_below(driver, os.getpid(), "worker")
            driver.wait(self.choose.uniform(0, 1))
        if self.choose.random() < self._jvm_share and self._kill_below(driver, driver.pid, "JVM"):
            self.tally.kills["JVM"] += 1
            return True
        driver.close()
        return False

    def _stop(self, driver: Process) -> None:
        self._wait_until(driver, lambda phase: phase == "before write")
        driver.wait(self.choose.uniform(0, 0.5))
        driver.stop()

    def _resume(self, driver: Process) -> None:
        if isinstance(driver, WithJVM) and self.choose.random() < self._cut_off_share:
            driver.leave_workers()
        else:
            driver.resume()

    def _fate(self) -> Fate:
        return Fate(next(self.points), self.choose.randrange(_MAX_PASSES))

    def _wait_at_work(self, driver: Process) -> None:
        self._wait_until(driver, lambda phase: phase != STARTING)

    def _wait_until(self, driver: Process, reached: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not reached(driver.life.phase) and time.monotonic() < deadline:
            if driver.wait(0.05, or_stopped=True):
                return

    def _kill_below(self, driver: Process, root: int, what: str) -> bool:
        """Kill one of the processes below `root`, while the driver lives; return whether it was."""
        deadline = time.monotonic() + _PATIENCE
        while driver.outcome is None and time.monotonic() < deadline:
            found = [pid for pid, is_a in below(root) if is_a == what]
            with suppress(ProcessLookupError):
                if found:
                    os.kill(self.choose.choice(found), signal.SIGKILL)
                    return True
            driver.wait(0.05)
        return False


class ConnectEpisode(SparkEpisode):
    """An episode whose drivers share a JVM, which goes on with their tasks when they are dead."""

    _jvm_share = 0.0
    _fatal_troubles = (_RESTARTED,)


def below(pid: int) -> Iterator[tuple[int, str]]:
    """Give the processes below one, each ``"JVM"``, ``"worker"``, or something else."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(") ")[2].split()[1])
    yield from _below(pid, "", parents)


def _below(pid: int, above: str, parents: Mapping[int, int]) -> Iterator[tuple[int, str]]:
    for child, parent in parents.items():
        if parent != pid:
            continue
        with suppress(OSError):
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            is_a = "other"
            if Path(os.fsdecode(command.split(b"\0")[0])).name == "java":
                is_a = "JVM"
            elif b"pyspark.daemon" in command:
                is_a = "worker" if above == "daemon" else "daemon"
            yield child, is_a
            yield from _below(child, is_a, parents)


class SparkPrograms(Way):
    """Drivers are programs with a session of Spark each."""

    on_spark = True
    source_name = "frame"
    sources: ClassVar[Sequence[str]] = ("frame", "opaque", "transactional")
    words = 300
    episode: ClassVar[type[Episode]] = SparkEpisode
    server = ""
    """That of Spark Connect."""

    def source(self, name: str, record: Record, folder: Path) -> AbstractContextManager[WordSource]:
        if name not in self.sources:
            raise UsageError("--source, with --spark, is", name, self.sources)
        frame = name == "frame"
        return nullcontext(FrameWords(record, MOST) if frame else OwnSpout(record, MOST, name))

    @property
    def run(self) -> RunTopology:
        return RunOnSpark(self.server)

    def by_hand(self, record: Record, plain: MapStateFactory) -> Sequence[Contender]:
        return [ForeachBatchByHand(record, MOST, plain, FrameWords(record, MOST))]


class SparkClients(SparkPrograms):
    """Drivers are clients of one server of Spark Connect, which is killed too."""

    source_name = "opaque"
    sources = ("opaque", "transactional")
    episode = ConnectEpisode

    @contextmanager
    def served(self, folder: Path) -> Iterator[Sequence[Trouble]]:
        with ConnectServer(folder / "connect", _SETTINGS) as server:
            self.server = server.url
            yield [lambda: restart(server) and _RESTARTED]

    def by_hand(self, record: Record, plain: MapStateFactory) -> Sequence[Contender]:
        return []  # what has no states would need a streaming DataFrame


def session(server: str = "") -> Any:
    from trident.spark.session import local_session, session_at

    return session_at(server) if server else local_session(**_SETTINGS)


def be_program(contender: Contender, place: EpisodePlace, life: Life) -> None:
    """Have this process be the driver, as a program of its own: Spark can't be forked."""
    file = life.mark.with_suffix(".driver")
    file.write_bytes(pickle.dumps((contender, place, life)))
    os.execv(sys.executable, [sys.executable, "-m", __name__, str(file)])


def main(file: Path) -> int:
    """Be the driver that a file describes; return the exit status."""
    contender, place, life = pickle.loads(file.read_bytes())
    with life.watched():
        return run_to_end(lambda: contender.drive(place, life)).value


if __name__ == "__main__":
    # Without PySpark's farewell, for which a client waits while its server is away
    os._exit(main(Path(sys.argv[1])))
