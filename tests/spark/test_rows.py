"""Rows that tasks write to a table, or the driver what Spark has computed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import trident
from tests.backends.rows.databases import Place
from tests.spark.files import wait_for
from tests.spark.lines import PATIENCE
from tests.spark.shared_rows import SharedFile
from trident import Rows, TridentTopology
from trident.backends.rows.catalog import staging_name
from trident.states.control import ControlRecord
from trident.states.errors import StaleBatchError
from trident.testing import fail_at, hold_at

SIZE = 6


@dataclass
class Numbers:
    """Numbers in three partitions, so many a batch, and the file that they are written to."""

    spark: SparkSession
    folder: Path

    @property
    def database(self) -> SharedFile:
        return SharedFile(f"{self.folder}/shop.db")

    def frame(self, batches: int) -> Any:
        """A streaming DataFrame of as many batches; the rows of each are in three partitions."""
        source = self.folder / "numbers"
        for batch in range(batches):
            path = source / f"{batch:02}"
            if not path.exists():
                start = batch * SIZE
                self.spark.range(start, start + SIZE, 1, 3).write.parquet(str(path))
        reader = self.spark.readStream.schema("id long").option("maxFilesPerTrigger", 3)
        return reader.parquet(f"{source}/*")

    def write(self, batches: int, **options: Any) -> list[int]:
        """Write them; return how many attempts each batch took."""
        given = {"checkpoint": self.folder / "log", "trigger": "available", "table": "t"}
        given |= {"database": self.database, **options}
        with trident.writeStream(self.frame(batches), **given) as run:
            assert run.awaitTermination(PATIENCE)
        return [progress.attempts for progress in run.groups["t"].recentProgress]

    def found(self, table: str = "t") -> list[int]:
        with sqlite3.connect(self.database.path) as connection:
            return sorted(row[-1] for row in connection.execute(f"SELECT * FROM {table}"))


@pytest.fixture
def numbers(spark: SparkSession, tmp_path: Path) -> Numbers:
    return Numbers(spark, tmp_path)


def test_tasks_write_their_partitions_once_over_restarts(numbers: Numbers) -> None:
    assert numbers.write(1) == [1]
    assert numbers.write(3) == [1, 1]
    assert numbers.found() == [*range(3 * SIZE)]
    assert numbers.found(staging_name("t")) == []


def test_a_task_that_dies_when_it_has_committed_leaves_one_set(numbers: Numbers) -> None:
    numbers.database.beside("die").touch()
    assert numbers.write(2) == [2, 1]
    assert numbers.database.beside("die taken").exists()
    assert numbers.found() == [*range(2 * SIZE)]
    assert numbers.found(staging_name("t")) == []


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
            try:
                state.commit(self.record)
                text = "written"
            except StaleBatchError:
                text = "overtaken"
            yield pa.RecordBatch.from_pydict({"text": [text]})


@pytest.mark.parametrize("released", ["before ready", "after announce"])
def test_a_task_that_writes_again_and_late_adds_nothing(numbers: Numbers, released: str) -> None:
    rows = Rows(numbers.database, "t").of({"id": "long"})
    one = numbers.spark.range(1).coalesce(1)
    with ThreadPoolExecutor(2) as pool, hold_at(released, txid=1) as hold:
        if released == "before ready":
            writing = pool.submit(numbers.write, 2)
            hold.wait_reached()
            record = rows.makeState().control.read()
            assert record is not None
            late = one.mapInArrow(LateTask(rows, record), "text string")
            assert [row.text for row in late.collect()] == ["written"]
        else:
            with hold_at("before write", txid=1) as begun:
                writing = pool.submit(numbers.write, 2)
                begun.wait_reached()
                record = rows.makeState().control.read()
                assert record is not None
                late = one.mapInArrow(LateTask(rows, record), "text string")
            hold.wait_reached()
            assert [row.text for row in late.collect()] == ["overtaken"]
        hold.release()
        assert writing.result(PATIENCE) == [1, 1]
    assert numbers.found() == [*range(2 * SIZE)]
    assert numbers.found(staging_name("t")) == []
