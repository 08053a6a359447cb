"""Rows that tasks write to a table, or the driver what Spark has computed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy
from pyspark.sql import SparkSession

import trident
from tests.backends.rows.databases import Place
from tests.spark.lines import PATIENCE
from tests.spark.shared_rows import SharedFile
from trident import GeneratorSpout, Rows, TridentTopology
from trident.backends.rows.urls import database_from_url
from trident.batch.watchpoints import watching
from trident.spark.mixed_engine import Costs
from trident.states.control import ControlRecord
from trident.states.errors import StaleBatchError
from trident.states.values import Token
from trident.testing import fail_at, hold_at

SIZE = 6


def numbered(spark: SparkSession) -> Any:
    """Numbers in three partitions; each start has one batch of them."""
    source = spark.readStream.format("rate-micro-batch").option("numPartitions", 3)
    return source.option("rowsPerBatch", SIZE).load()


@dataclass
class Numbers:
    """Numbers that are written to a file."""

    spark: SparkSession
    folder: Path

    @property
    def database(self) -> SharedFile:
        return SharedFile(f"{self.folder}/shop.db")

    def write(self, **options: Any) -> list[int]:
        """Write a batch of them, and what is staged; return how many attempts each took."""
        given = {"checkpoint": self.folder / "log", "trigger": "available", "table": "t"}
        given |= {"database": self.database, **options}
        with trident.writeStream(numbered(self.spark).select("value"), **given) as run:
            assert run.awaitTermination(PATIENCE)
        # What was staged Spark may make again: that is skipped.
        done = [each for each in run.groups["t"].recentProgress if each.attempts]
        assert {(each.keys_written, each.engine) for each in done} == {(SIZE, "spark")}
        return [each.attempts for each in done]

    def found(self, table: str = "t") -> list[int]:
        with closing(sqlite3.connect(self.database.path)) as connection:
            return sorted(value for (value,) in connection.execute(f"SELECT * FROM {table}"))


@pytest.fixture
def numbers(spark: SparkSession, tmp_path: Path) -> Numbers:
    return Numbers(spark, tmp_path)


def test_tasks_write_their_partitions_once_though_one_dies_when_it_has_committed(
    numbers: Numbers,
) -> None:
    numbers.database.beside("die").touch()
    assert numbers.write() == [2]
    assert numbers.database.beside("die taken").exists()
    assert numbers.write() == [1]
    assert numbers.found() == [*range(2 * SIZE)]
    assert numbers.database.left() == []


class Ended(Exception):
    """Ends a run as a crash does."""


def ending_at(point: str, txid: int) -> Any:
    """End a run where a batch reaches a point."""

    def end(reached: str, token: Token) -> None:
        if (reached, token.txid) == (point, txid):
            raise Ended

    return watching(end)


@dataclass(frozen=True)
class LateTask:
    """A second run of a task, which writes when its batch is over."""

    rows: Rows
    record: ControlRecord

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            state = self.rows.makeState()
            state.beginCommit(self.record)
            state.append(batch)
            state.commit(self.record)
            try:
                state.stage(self.record)
                text = "written"
            except StaleBatchError:
                text = "overtaken"
            yield pa.RecordBatch.from_pydict({"text": [text]})


def test_a_task_that_writes_again_or_late_adds_nothing(numbers: Numbers) -> None:
    rows = Rows(numbers.database, "t").of({"value": "long"})
    one = numbers.spark.range(1).withColumnRenamed("id", "value").coalesce(1)
    told = []
    with (
        ThreadPoolExecutor(1) as pool,
        hold_at("before ready", txid=1) as hold,
        hold_at("after announce", txid=1) as late,
    ):
        writing = pool.submit(numbers.write)
        hold.wait_reached()
        record = rows.makeState().control.read()
        assert record is not None
        again = one.mapInArrow(LateTask(rows, record), "text string")
        told += again.collect()
        hold.release()
        late.wait_reached()
        told += again.collect()
        late.release()
        assert writing.result(PATIENCE) == [1]
    assert [row.text for row in told] == ["written", "overtaken"]
    assert numbers.found() == [*range(SIZE)]
    assert numbers.database.left() == []


def test_batches_that_are_staged_are_written_once(numbers: Numbers) -> None:
    here = {"database": f"sqlite:{numbers.database.path}", "max_pending": 3}
    with fail_at("before commit", 1, times=2):
        assert numbers.write(**here) == [3]
    with pytest.raises(Ended), ending_at("after stage", 2):
        numbers.write(**here)
    assert numbers.found() == [*range(SIZE)]
    assert numbers.write(**here) == [1, 1]
    assert numbers.found() == [*range(3 * SIZE)]


VALUES: dict[str, tuple[str, Any]] = {
    "moment": (
        "TIMESTAMP'2026-07-01 20:30:00.123456'",  # of New York
        datetime(2026, 7, 2, 0, 30, 0, 123456, UTC),
    ),
    "wall": (
        "TIMESTAMP_NTZ'2026-07-01 20:30:00.123456'",
        datetime(2026, 7, 1, 20, 30, 0, 123456),
    ),
    "day": ("DATE'1969-12-31'", date(1969, 12, 31)),
    "amount": ("CAST('-1234567.89' AS decimal(9,2))", Decimal("-1234567.89")),
    "raw": ("X'00FF5C0A'", b"\0\xff\\\n"),
    "whole": ("-9223372036854775808", -(2**63)),
    "small": ("CAST(-128 AS byte)", -128),
    "part": ("0.1D", 0.1),
    "flag": ("true", True),
    "text": ("'\\\\N \\t \\' é'", "\\N \t ' é"),
}


@pytest.mark.parametrize("server", ["postgres", "mariadb"])
def test_values_of_a_frame_are_in_the_table_as_they_were_and_null_where_they_are_null(
    spark: SparkSession, tmp_path: Path, server: str, request: pytest.FixtureRequest
) -> None:
    place = Place.at(request.getfixturevalue(f"{server}_server").url)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        given = [f"IF(value = 0, NULL, {text}) AS {name}" for name, (text, _) in VALUES.items()]
        with trident.writeStream(
            numbered(spark).selectExpr("value AS id", *given),
            place.url,
            place.table,
            "id",
            checkpoint=tmp_path / "log",
            trigger="available",
        ) as run:
            run.awaitTermination(PATIENCE)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    with database_from_url(place.url).engine.connect() as connection:
        table = sqlalchemy.Table(place.table, sqlalchemy.MetaData(), autoload_with=connection)
        [empty, *found] = connection.execute(sqlalchemy.select(table).order_by("id")).mappings()
    assert {value for name, value in empty.items() if name != "id"} == {None}
    wanted = {name: value for name, (_, value) in VALUES.items()}
    for row in found:
        moment = row["moment"]
        told = {**row, "moment": moment.replace(tzinfo=moment.tzinfo or UTC)}
        told["part"] = float(told["part"])  # MySQL's is read as a decimal
        told.pop("id")
        assert told == wanted
    assert len(found) == SIZE - 1


def test_a_batch_without_rows_changes_nothing(numbers: Numbers) -> None:
    none = numbered(numbers.spark).where("value < 0").select("value")
    given = {"checkpoint": numbers.folder / "log", "trigger": "available", "table": "t"}
    with trident.writeStream(none, numbers.database, **given) as run:
        run.awaitTermination(PATIENCE)
    assert [each.keys_written for each in run.groups["t"].recentProgress] == [0]
    assert numbers.found() == []


def test_batches_of_either_engine_are_in_one_table_once(
    numbers: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = cycle(["local", "spark"])
    monkeypatch.setattr(Costs, "choose", lambda self, tuples: next(turns))
    topology = TridentTopology()
    spout = GeneratorSpout("value long", lambda n: (n,), batch=SIZE, total=4 * SIZE)
    stream = topology.newStream("numbers", spout)
    for table in ("t", "u"):  # two in one batch
        stream.partitionPersist(Rows(numbers.database, table))
    with topology.start(numbers.spark, numbers.folder / "log", trigger="available") as run:
        assert run.awaitTermination(PATIENCE)
    done = run.groups["numbers"].recentProgress
    assert [each.engine for each in done] == ["local", "spark", "local", "spark"]
    assert {each.keys_written for each in done} == {2 * SIZE}
    assert numbers.found() == numbers.found("u") == [*range(4 * SIZE)]
