"""Steps by themselves: plain functions, functions of record batches, and joins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.report import Figure, rate, throughput, timed
from trident import (
    CombinerAggregator,
    Count,
    FixedBatchSpout,
    MemoryMapState,
    Sum,
    TridentTopology,
    TridentTuple,
    vectorised,
)
from trident.api.stream import Stream
from trident.api.topology import TridentTopology as Topology
from trident.job.compile import Local, compile_job
from trident.job.job import Kernels
from trident.spark import local_session
from trident.spark.stage import PythonStage, StageContext
from trident.states.control import ControlRecord
from trident.states.values import Token

_LOCAL = 500_000
_ROWS = 4_000_000
_LEFT, _RIGHT = 1_000_000, 100_000
_KEYS = 10_000
_ROUNDS = 4

Made = Callable[[pa.RecordBatch], pa.RecordBatch]
Step = Callable[[Topology, list[Stream]], Stream]


def more(n: int) -> int:
    return n + 1


def is_no_third(n: int) -> bool:
    return n % 3 != 0


def parity(n: int) -> int:
    return n & 1


def parities(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What the three functions make, by record batch."""
    raised = pc.add(batch.column(0), 1)
    third = pc.subtract(raised, pc.multiply(pc.divide(raised, 3), 3))
    kept = raised.filter(pc.not_equal(third, 0))
    return pa.record_batch([pc.bit_wise_and(kept, 1)], ["n"])


def called(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same, each value by itself, as one would write it by hand."""
    kept = filter(is_no_third, map(more, batch.column(0).to_pylist()))
    return pa.record_batch([pa.array(map(parity, kept), pa.int64())], ["n"])


def plain(topology: Topology, streams: list[Stream]) -> Stream:
    [stream] = streams
    return stream.map(more, "n long").filter(is_no_third).map(parity, "n long")


def by_batch(topology: Topology, streams: list[Stream]) -> Stream:
    [stream] = streams
    return stream.flatMap(vectorised(parities), "n long")


class Greatest(CombinerAggregator[int]):
    """A combiner of a user's, which Catalyst doesn't know."""

    output_types = (int,)

    def init(self, tuple: TridentTuple) -> int:
        return tuple.getLong(0)

    def combine(self, a: int, b: int) -> int:
        return a if a > b else b

    def zero(self) -> int:
        return 0


def grouped(topology: Topology, streams: list[Stream]) -> Stream:
    [stream] = streams
    greatest = stream.groupBy("k").aggregate("n", Greatest(), "most")
    return greatest.project("most")


def joined(topology: Topology, streams: list[Stream]) -> Stream:
    one, other = streams
    return topology.join(one, "n", other, "n", "n, a, b")


def figures(folder: Path) -> Iterator[Figure]:
    """Measure the steps; what is written in the end is one number."""
    times = [_locally(plain) for _ in range(_ROUNDS)]
    yield rate("local: three plain functions, CPU", _LOCAL, times, target=1.5e6)
    times = [_locally(by_batch) for _ in range(_ROUNDS)]
    yield rate("local: the same as one of record batches, CPU", _LOCAL, times, target=3e6)

    spark = local_session()
    bench = _Bench(spark, folder)
    numbers = bench.written("numbers", {"n": pa.array(range(_ROWS))})
    cores = spark.sparkContext.defaultParallelism

    def by_hand(function: Made) -> float:
        frame = spark.read.parquet(str(numbers)).mapInArrow(_each(function), "n long")
        return timed(frame.agg(F.sum("n")).collect)

    ours, theirs = bench.pairs(lambda: bench.ours(plain, "n", numbers), lambda: by_hand(called))
    name = "Spark: three plain functions; mapInArrow by hand"
    yield throughput(name, _ROWS, ours, theirs, target=0.8)
    a_core = [seconds * cores for seconds in ours]
    yield rate("Spark: three plain functions, a core", _ROWS, a_core, target=1e6)
    yield rate("Spark: their stage by itself, CPU", _ROWS, _stage_alone(), target=1e6)

    ours, theirs = bench.pairs(
        lambda: bench.ours(by_batch, "n", numbers), lambda: by_hand(parities)
    )
    name = "Spark: functions of record batches; mapInArrow by hand"
    yield throughput(name, _ROWS, ours, theirs, target=0.8)

    keys = pa.array([number % _KEYS for number in range(_ROWS)])
    in_groups = bench.written("groups", {"k": keys, "n": pa.array(range(_ROWS))})
    bench.ours(grouped, "most", in_groups)  # a JVM compiles meanwhile
    a_core = [bench.ours(grouped, "most", in_groups) * cores for _ in range(_ROUNDS)]
    name = "Spark: 10 k groups, a user's combiner in Python, a core"
    yield rate(name, _ROWS, a_core, target=500e3)

    left = {"n": pa.array([i * 7 % _RIGHT for i in range(_LEFT)]), "a": pa.array(range(_LEFT))}
    right = {"n": pa.array(range(_RIGHT)), "b": pa.array(range(_RIGHT))}
    one, other = bench.written("one", left), bench.written("other", right)

    ours, theirs = bench.pairs(
        lambda: bench.ours(joined, "b", one, other), lambda: bench.joined_by_hand(one, other)
    )
    name = "Spark: join of 1 M and 100 k; Spark's own, in foreachBatch"
    yield throughput(name, _LEFT, ours, theirs, target=1 / 1.2)
    spark.stop()


def _locally(step: Step) -> float:
    """CPU seconds of one batch in this process."""
    topology = TridentTopology()
    spout = FixedBatchSpout("n long", _LOCAL, *((n,) for n in range(_LOCAL)))
    made = step(topology, [topology.newStream("numbers", spout)])
    made.aggregate(Count(), "count").persistentAggregate(
        MemoryMapState.Factory(), "count", Sum(), "sum"
    )
    with topology.start() as run:
        began = process_time()
        run.processAllAvailable()
        return process_time() - began


def _stage_alone() -> list[float]:
    """CPU seconds of what the tasks of the plain functions run, over all rows."""
    topology = TridentTopology()
    plain(topology, [topology.newStream("n", FixedBatchSpout("n long", 1))])
    job = compile_job(topology.plan().groups[0], Local())
    kernels = [each for step in job.steps if isinstance(step, Kernels) for each in step.kernels]
    context = StageContext(ControlRecord("0" * 32, Token(1, 0), 0))
    stage = PythonStage(tuple(kernels), pa.schema({"n": pa.int64()}), (), context, 1)
    numbers = pa.table({"n": pa.array(range(_ROWS))}).to_batches(max_chunksize=10_000)
    times = []
    for _ in range(_ROUNDS):
        began = process_time()
        rows = sum(batch.num_rows for batch in stage(numbers))
        times.append(process_time() - began)
        assert rows < _ROWS
    return times


def _each(function: Made) -> Callable[[Any], Any]:
    return lambda batches: map(function, batches)


class _Bench:
    """Runs over Parquet files, of which all are one batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._numbers = count()

    def written(self, name: str, columns: dict[str, pa.Array]) -> Path:
        """Columns of whole numbers, in a folder with as many files as there are cores."""
        place, table = self._folder / name, pa.table(columns)
        place.mkdir()
        parts = self._spark.sparkContext.defaultParallelism
        size = -(-table.num_rows // parts)
        for part in range(parts):
            pq.write_table(table.slice(part * size, size), place / f"{part}.parquet")
        return place

    def ours(self, step: Step, summed: str, *places: Path) -> float:
        """How long the engine takes for the batch."""
        topology = TridentTopology()
        streams = []
        for place in places:
            schema = self._spark.read.parquet(str(place)).schema
            frame = self._spark.readStream.schema(schema).parquet(str(place))
            streams.append(topology.newStream(place.name, frame))
        total = step(topology, streams).aggregate(summed, Sum(), "batch")
        total.persistentAggregate(MemoryMapState.Factory(), "batch", Sum(), "sum")
        with topology.start(self._spark, trigger="available") as run:
            run.processAllAvailable()
            [group] = run.groups.values()
            return sum(progress.seconds["spark"] for progress in group.recentProgress)

    def joined_by_hand(self, one: Path, other: Path) -> float:
        """How long a join of two streams takes as one would write it, batch by batch."""
        read = self._spark.readStream
        left = read.schema("n long, a long").parquet(str(one))
        right = read.schema("n long, b long").parquet(str(other))
        both = left.selectExpr("0 AS side", "n", "a", "null AS b").union(
            right.selectExpr("1 AS side", "n", "null AS a", "b")
        )
        times: list[float] = []

        def join(frame: DataFrame, batch: int) -> None:
            pair = frame.where("side = 0").join(
                frame.where("side = 1").select("n", F.col("b").alias("c")), "n"
            )
            times.append(timed(pair.agg(F.sum("c")).collect))

        place = self._folder / f"run-{next(self._numbers)}"
        query = (
            both.writeStream.foreachBatch(join)
            .option("checkpointLocation", f"file://{place}")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sum(times)

    def pairs(
        self, ours: Callable[[], float], theirs: Callable[[], float]
    ) -> tuple[list[float], list[float]]:
        """The times of both, in turn; the first round, in which a JVM compiles, isn't counted."""
        times = [(ours(), theirs()) for _ in range(_ROUNDS + 1)][1:]
        return [own for own, _ in times], [other for _, other in times]
