"""The library's engines: this process, Spark, and either as the batch is large."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from benchmarks.sizes import cases
from benchmarks.sizes.cases import Case, Timed
from benchmarks.sizes.setting import UNTIMED, Place, Setting, Text
from benchmarks.sizes.spark_batches import SPLIT, durations, lines
from benchmarks.topologies import word_count
from trident import Fields, IBatchSpout, MemoryMapState, TridentCollector, native
from trident.backends import redis, sqlite
from trident.states.state import StateFactory

_FEWEST = 3
_LEARNED = 9
"""Batches after which it is known on which engine they run."""
_MOST = 5_000
_TABLE = "count"


def engine(setting: Setting, contender: str) -> Mapping[str, Any]:
    """Return with what options a contender with a spout is started."""
    match contender:
        case cases.LOCAL:
            return {}
        case cases.MIXED:
            return {"spark": setting.spark}
    return {"spark": setting.spark, "engine": "spark"}


def spout(setting: Setting, case: Case) -> Timed:
    """Count the lines of a spout, on the engine that the contender is named for."""
    untimed = _LEARNED if case.contender == cases.MIXED else UNTIMED
    text = setting.text(case.keys)
    timed = TimedSpout(text, case.words, setting.effort.seconds, untimed=untimed)
    with setting.place() as place:
        topology = word_count(timed, "line", state(setting, case, place))
        how = engine(setting, case.contender)
        with topology.start(trigger="available", **how, **_options(case, place)) as run:
            run.awaitTermination()
            [group] = run.groups.values()
            last = group.recentProgress[-len(timed.batches) :]
        setting.check(case, place, timed.emitted, "curr", _TABLE)
    on_spark = sum(progress.engine == "spark" for progress in last) / len(last)
    return Timed(case, timed.batches, timed.seconds, on_spark)


def frame(setting: Setting, case: Case) -> Timed:
    """Count a streaming DataFrame, split natively."""
    spark = setting.spark
    source = lines(spark, setting.files(case))
    with setting.place() as place:
        topology = word_count(source, "value", state(setting, case, place), native(SPLIT))
        with topology.start(spark, trigger="available", **_options(case, place)) as run:
            [query] = spark.streams.active
            run.processAllAvailable()
        batches = durations(query)
        setting.check(case, place, UNTIMED + len(batches), "curr", _TABLE)
    return Timed(case, batches, sum(batches), on_spark=1.0)


class TimedSpout(IBatchSpout):
    """Emits batches of a text, and takes the time of each from emission to acknowledgement.

    Parameters
    ----------
    text : Text
        The text.
    words : int
        In a batch.
    seconds : float
        How long it emits, after the batches that are not timed.
    fewest, most : int
        How many batches are timed, whatever the time.
    untimed : int
        How many come before them.
    """

    kind = "transactional"

    def __init__(
        self,
        text: Text,
        words: int,
        seconds: float,
        fewest: int = _FEWEST,
        most: int = _MOST,
        untimed: int = UNTIMED,
    ) -> None:
        self._text = text
        self._words = words
        self._seconds = seconds
        self._untimed = untimed
        self._fewest = untimed + fewest
        self._most = untimed + most
        self._emitted: dict[int, float] = {}
        self._acked: dict[int, float] = {}

    def isReady(self, batchId: int) -> bool:
        if batchId <= self._fewest:
            return True
        started = self._acked.get(self._untimed)
        over = started is not None and perf_counter() - started > self._seconds
        return batchId <= self._most and not over

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        self._emitted[batchId] = perf_counter()
        collector.emitColumns({"line": self._text.batch(batchId - 1, self._words)})

    def ack(self, batchId: int) -> None:
        self._acked[batchId] = perf_counter()

    def getOutputFields(self) -> Fields:
        return Fields.of("line string")

    @property
    def emitted(self) -> int:
        """How many batches were emitted."""
        return len(self._emitted)

    @property
    def batches(self) -> list[float]:
        """How long each timed batch took."""
        ids = sorted(self._acked)[self._untimed :]
        return [self._acked[number] - self._emitted[number] for number in ids]

    @property
    def seconds(self) -> float:
        """How long they took together."""
        return max(self._acked.values()) - self._acked[self._untimed]


def _options(case: Case, place: Place) -> Mapping[str, Any]:
    """A log on disk for a state that lasts."""
    return {} if case.store == "memory" else {"checkpoint": place.checkpoint}


def state(setting: Setting, case: Case, place: Place) -> StateFactory:
    """Return the state that a case counts in."""
    if case.store == "SQLite":
        return sqlite.opaque(place.database, _TABLE)
    if case.store == "Redis":
        return redis.opaque(port=setting.redis.port, prefix=place.prefix)
    return MemoryMapState.Factory()
