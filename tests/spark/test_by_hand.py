"""How a foreachBatch by hand doubles rows and loses them, as docs/compare.md says."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession

Batch = Callable[[DataFrame, int], None]


class Shop:
    """A stream of two files with an order each, and the table that a foreachBatch writes."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.file = str(folder / "shop.db")
        (folder / "orders").mkdir()
        for name in ("first", "second"):
            (folder / "orders" / name).write_text(f"{name}\n")
        with closing(sqlite3.connect(self.file)) as database:
            database.execute("CREATE TABLE orders (name)")
            database.execute("CREATE TABLE done (batch, part, PRIMARY KEY (batch, part))")

    def run(self, batch: Batch, *, cores: int = 2, checkpoint: str = "checkpoint") -> bool:
        """Run the stream until all is read, as a machine of so many cores would split its files."""
        self._spark.conf.set("spark.sql.files.minPartitionNum", cores)
        lines = self._spark.readStream.text(f"file://{self._folder}/orders")
        writing = lines.writeStream.foreachBatch(batch).trigger(availableNow=True)
        writing = writing.option("checkpointLocation", f"file://{self._folder}/{checkpoint}")
        try:
            writing.start().awaitTermination()
        except StreamingQueryException:
            return False
        return True

    @property
    def orders(self) -> list[str]:
        with closing(sqlite3.connect(self.file)) as database:
            return [name for (name,) in database.execute("SELECT name FROM orders ORDER BY name")]


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[Shop]:
    yield Shop(spark, tmp_path)
    spark.conf.unset("spark.sql.files.minPartitionNum")


def append(file: str, rows: Iterator[Row], batch: int, part: int) -> None:
    """Write rows and the id under which they are done in one transaction, unless it is there."""
    with closing(sqlite3.connect(file)) as database, database:
        try:
            database.execute("INSERT INTO done VALUES (?, ?)", (batch, part))
        except sqlite3.IntegrityError:
            return
        database.executemany("INSERT INTO orders VALUES (?)", rows)


def dies() -> None:
    raise OSError("the driver's machine is gone")


@pytest.mark.spark
def test_rows_are_doubled_where_the_driver_dies_after_the_append(shop: Shop) -> None:
    def write(batch: DataFrame, number: int) -> None:
        with closing(sqlite3.connect(shop.file)) as database, database:
            database.executemany("INSERT INTO orders VALUES (?)", batch.collect())

    def write_and_die(batch: DataFrame, number: int) -> None:
        write(batch, number)
        dies()

    assert not shop.run(write_and_die)
    assert shop.run(write)
    assert shop.orders == ["first", "first", "second", "second"]


@pytest.mark.spark
def test_an_id_for_each_partition_loses_rows_where_the_number_of_cores_changes(shop: Shop) -> None:
    def writer(file: str, *, alive: bool) -> Batch:
        def write(batch: DataFrame, number: int) -> None:
            def write_partition(rows: Iterator[Row]) -> None:
                task = TaskContext.get()
                assert task is not None
                if task.partitionId() and not alive:
                    dies()
                append(file, rows, number, task.partitionId())

            batch.foreachPartition(write_partition)

        return write

    assert not shop.run(writer(shop.file, alive=False), cores=2)
    [order] = shop.orders
    assert shop.run(writer(shop.file, alive=True), cores=1)
    assert shop.orders == [order]


@pytest.mark.spark
def test_an_id_for_each_batch_loses_rows_where_the_checkpoint_is_new(shop: Shop) -> None:
    def write(batch: DataFrame, number: int) -> None:
        append(shop.file, iter(batch.collect()), number, 0)

    assert shop.run(write)
    later = Path(shop.file).parent / "orders" / "later"
    for old in later.parent.iterdir():
        old.unlink()
    later.write_text("later\n")
    assert shop.run(write, checkpoint="another")
    assert shop.orders == ["first", "second"]
