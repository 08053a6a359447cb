"""Windows, beside the same aggregate without a window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.report import Figure, alternated, median
from trident import (
    CombinerAggregator,
    Duration,
    FixedBatchSpout,
    Sum,
    TridentTopology,
    TumblingDurationWindow,
)
from trident.api.stream import Stream
from trident.backends import sqlite
from trident.spark import local_session

_TUPLES = 400_000
_BATCH = 20_000
_WINDOW = 1_000
_ROUNDS = 11  # a run takes a third of a second
_ROUNDS_ON_SPARK = 3

Step = Callable[[Stream, Any], object]


class Widest(CombinerAggregator[int]):
    """The greatest value; a combiner of a user's, which runs in Python on either engine."""

    output_types = (int,)
    positional = True

    def init(self, tuple: Any) -> int:
        return int(tuple[0])

    def combine(self, a: int, b: int) -> int:
        return a if a > b else b

    def zero(self) -> int:
        return 0


def figures(folder: Path) -> Iterator[Figure]:
    """Measure whole runs, from start to end, with a state in SQLite."""
    number = count()
    rows = [(n % 1000, 7 * n) for n in range(_TUPLES)]
    spout = FixedBatchSpout("v long, at long", _BATCH, *rows)

    def play(spark: Any, step: Step) -> None:
        topology = TridentTopology()
        step(topology.newStream("values", spout), sqlite.opaque(folder / f"{next(number)}.db"))
        options: dict[str, Any] = {} if spark is None else {"engine": "spark"}
        with topology.start(spark, trigger="available", **options) as run:
            run.awaitTermination()

    def compared(what: str, spark: Any, window: Step, plain: Step, target: float = 1.3) -> Figure:
        ours, theirs = alternated(
            _ROUNDS if spark is None else _ROUNDS_ON_SPARK,
            lambda: play(spark, window),
            lambda: play(spark, plain),
        )
        ratio = median([one / other for one, other in zip(ours, theirs, strict=True)])
        return Figure(what, _each(min(ours)), _each(min(theirs)), ratio, target, at_most=True)

    yield compared("local: tumbling window of 1,000; one sum", None, _counted(Sum), _whole(Sum))
    yield compared(
        "local: the same with a combiner of a user's", None, _counted(Widest), _whole(Widest)
    )
    yield compared("local: tumbling window by a time; one sum", None, _timed, _whole(Sum), 1.5)
    spark = local_session()
    yield compared(
        "Spark: tumbling window of 1,000, a user's combiner; one",
        spark,
        _counted(Widest),
        _whole(Widest),
    )
    yield compared(
        "Spark: tumbling window of 1,000; one native sum", spark, _counted(Sum), _whole(Sum)
    )
    spark.stop()


def _counted(combiner: Any) -> Step:
    return lambda stream, state: stream.tumblingWindow(_WINDOW, state, "v", combiner(), "some")


def _whole(combiner: Any) -> Step:
    return lambda stream, state: stream.persistentAggregate(state, "v", combiner(), "every")


def _timed(stream: Stream, state: Any) -> object:
    window = TumblingDurationWindow.of(Duration.seconds(7)).withTimestampField("at")
    return stream.window(window, state, "v", Sum(), "some")


def _each(seconds: float) -> str:
    return f"{_TUPLES / seconds:,.0f} tuples/s"
