"""Rows of ten columns into a table in PostgreSQL, beside the same upsert by hand.

By hand is a COPY into a temporary table and one MERGE, in one transaction, of the same columns,
which Arrow makes CSV of: the fastest that was found. Nothing else is done there: no types are
checked, there is no checkpoint, and after a crash nobody knows whether a batch was written.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.csv import WriteOptions, write_csv

from benchmarks.jdbc import jdbc_driver, jdbc_options
from benchmarks.report import Figure, alternated, limit, median, throughput
from trident import Fields, IBatchSpout, TridentTopology
from trident.backends.rows import Rows
from trident.spark import local_session
from trident.testing.servers.postgres import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Mapping[str, tuple[str, str]] = {
    "id": ("long", "bigint PRIMARY KEY"),
    "name": ("string", "text"),
    "city": ("string", "text"),
    "quantity": ("int", "integer"),
    "price": ("decimal(12,2)", "numeric(12, 2)"),
    "score": ("double", "double precision"),
    "paid": ("boolean", "boolean"),
    "day": ("date", "date"),
    "at": ("timestamp", "timestamptz"),
    "note": ("string", "text"),
}
"""The columns: types of fields, and of the table."""
_FIELDS = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
_CITIES = ("Zürich", "Bern", "São Paulo", "New York", "Paris")
_OTHERS = [name for name in COLUMNS if name != "id"]
_MERGE = f"""
    MERGE INTO {{table}} AS stored USING {{given}} AS given ON stored.id = given.id
    WHEN MATCHED THEN UPDATE SET {", ".join(f"{name} = given.{name}" for name in _OTHERS)}
    WHEN NOT MATCHED THEN INSERT ({", ".join(COLUMNS)})
        VALUES ({", ".join(f"given.{name}" for name in COLUMNS)})"""
_BATCHES: Mapping[int, int] = {100: 500, 10_000: 40, 1_000_000: 6}
"""How many batches of how many rows; every second one has the ids of the one before."""
_ROUNDS = 3
_MOMENT = pa.timestamp("us", "+00:00")  # in Python of the zone datetime.UTC

Columns = Mapping[str, Sequence[Any]]


def figures(folder: Path) -> Iterator[Figure]:
    """Measure batches on the local engine, then a frame of a million rows on Spark."""
    with PostgresServer(folder / "postgres", "max_wal_size=4GB", "shared_buffers=256MB") as server:
        bench = _Bench(folder, server.url)
        for rows, batches in _BATCHES.items():
            given = _batches(rows, batches)
            ours, hand = bench.local(given), bench.by_hand(given)
            name = f"PostgreSQL: {rows:,} rows a batch"
            if rows == 100:
                yield limit(
                    f"{name} (by hand {median(hand) * 1e3:.1f} ms)", median(ours), target=4e-3
                )
            else:
                name += ", COPY and MERGE by hand"
                yield throughput(name, rows, ours, hand, target=0.8)
        source = _written(folder / "orders", _orders(0, rows, 0))
        spark = local_session(**{"spark.jars": str(jdbc_driver(folder / "jars"))})
        times = alternated(
            _ROUNDS, lambda: bench.spark(spark, source), lambda: bench.by_jdbc(spark, source)
        )
        spark.stop()
        name = f"Spark: {rows:,} rows, PostgreSQL; JDBC and a MERGE"
        yield throughput(name, rows, *times, target=1.0)


def _batches(rows: int, batches: int) -> list[Columns]:
    return [_orders(number // 2 * rows, rows, number).to_pydict() for number in range(batches)]


def _orders(first: int, rows: int, seed: int) -> pa.RecordBatch:
    """Rows that are alike in every run; the ids are counted from `first`."""
    draw = random.Random(seed)
    ids = range(first, first + rows)
    long = pa.int64()
    cents = pa.array([draw.randrange(10**6) for _ in ids], long)
    columns = [
        pa.array(ids, long),
        pa.array([f"Customer number {number}" for number in ids]),
        pa.array(draw.choices(_CITIES, k=rows)),
        pa.array([draw.randrange(100) for _ in ids], pa.int32()),
        cents.cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)),
        pa.array([draw.random() for _ in ids]),
        pa.array(draw.choices([True, False], k=rows)),
        pa.array([draw.randrange(18_000, 20_000) for _ in ids], pa.int32()).cast(pa.date32()),
        pa.array([draw.randrange(10**15, 2 * 10**15) for _ in ids], _MOMENT),
        pa.array([None if number % 3 else f'said "{number}",\nand went' for number in ids]),
    ]
    return pa.RecordBatch.from_arrays(columns, list(COLUMNS))


_SCHEMA = _orders(0, 1, 0).schema


def _written(folder: Path, rows: pa.RecordBatch) -> Path:
    """Write a batch as files of Parquet, one for each core of two."""
    from pyarrow import parquet

    folder.mkdir()
    middle = rows.num_rows // 2
    for number, part in enumerate((rows.slice(0, middle), rows.slice(middle))):
        parquet.write_table(pa.Table.from_batches([part]), folder / f"{number}.parquet")
    return folder


class _Timed(IBatchSpout):
    """Emits batches, and takes the time of each from its emission to its acknowledgement."""

    kind = "opaque"

    def __init__(self, batches: Sequence[Columns]) -> None:
        self._batches = batches
        self.seconds: list[float] = []

    def isReady(self, batchId: int) -> bool:
        return batchId <= len(self._batches)

    def emitBatch(self, batchId: int, collector: Any) -> None:
        self._begun = perf_counter()
        collector.emitColumns(self._batches[batchId - 1])

    def ack(self, batchId: int) -> None:
        self.seconds.append(perf_counter() - self._begun)

    def getOutputFields(self) -> Fields:
        return Fields.of(_FIELDS)


class _Bench:
    """Runs of each side, each on a checkpoint and a table of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._numbers = count()

    def local(self, batches: Sequence[Columns]) -> Sequence[float]:
        """How long each batch took on the local engine, with a durable log."""
        place, table = self._place()
        spout, topology = _Timed(batches), TridentTopology()
        orders = topology.newStream("orders", spout)
        orders.partitionPersist(Rows(self._url, table=table, key="id"))
        with topology.start(checkpoint=place, trigger="available") as run:
            run.awaitTermination()
        self._check(table, batches)
        return spout.seconds[2:]

    def by_hand(self, batches: Sequence[Columns]) -> Sequence[float]:
        """How long each took by hand."""
        import psycopg

        _, table = self._place()
        seconds = []
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("SET timezone = 'UTC'")
            for batch in batches:
                begun = perf_counter()
                with connection.transaction():
                    connection.execute(
                        f"CREATE TEMPORARY TABLE given (LIKE {table}) ON COMMIT DROP"
                    )
                    with connection.cursor().copy("COPY given FROM STDIN (FORMAT csv)") as copy:
                        for part in pa.table(batch, _SCHEMA).to_batches(8192):
                            copy.write(_csv(part))
                    connection.execute(_MERGE.format(table=table, given="given"))
                seconds.append(perf_counter() - begun)
        self._check(table, batches)
        return seconds[2:]

    def spark(self, spark: SparkSession, source: Path) -> None:
        """Run our topology over the files."""
        place, table = self._place()
        topology = TridentTopology()
        orders = topology.newStream("orders", self._frame(spark, source))
        orders.partitionPersist(Rows(self._url, table=table, key="id"))
        with topology.start(spark, checkpoint=place / "log", trigger="available") as run:
            run.processAllAvailable()
        shutil.rmtree(place)

    def by_jdbc(self, spark: SparkSession, source: Path) -> None:
        """Run Spark's own writer, into a table that is merged then."""
        import psycopg

        place, table = self._place()
        options = jdbc_options(self._url, f"{table}_given")

        def merge(frame: DataFrame, batch: int) -> None:
            frame.write.format("jdbc").options(**options).mode("overwrite").save()
            with psycopg.connect(self._url) as connection:
                connection.execute(_MERGE.format(table=table, given=f"{table}_given"))

        frame = self._frame(spark, source).writeStream.foreachBatch(merge)
        frame = frame.option("checkpointLocation", f"file://{place}/checkpoint")
        frame.trigger(availableNow=True).start().awaitTermination()
        shutil.rmtree(place)

    def _frame(self, spark: SparkSession, source: Path) -> DataFrame:
        return spark.readStream.schema(_FIELDS).parquet(f"file://{source}")

    def _place(self) -> tuple[Path, str]:
        import psycopg

        table = f"orders{next(self._numbers)}"
        columns = ", ".join(f"{name} {kind}" for name, (_, kind) in COLUMNS.items())
        with psycopg.connect(self._url) as connection:
            connection.execute(f"CREATE TABLE {table} ({columns})")
        place = self._folder / table
        place.mkdir()
        return place, table

    def _check(self, table: str, batches: Sequence[Columns]) -> None:
        import psycopg

        with psycopg.connect(self._url) as connection:
            [[found]] = connection.execute(f"SELECT count(*) FROM {table}")
            connection.execute(f"DROP TABLE {table}")
        assert found == sum(len(batch["id"]) for batch in batches[::2]), f"{found:,} rows"


def _csv(part: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    at = part.column("at").cast(pa.timestamp("us"))
    part = part.set_column(part.schema.get_field_index("at"), "at", at)
    write_csv(part, sink, WriteOptions(include_header=False, quoting_style="all_valid"))
    written: bytes = sink.getvalue().to_pybytes()
    return written
