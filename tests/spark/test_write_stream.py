"""One call writes a streaming DataFrame to a table: what it takes, and what it says."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import trident
from tests.backends.rows.databases import Place
from trident.backends.rows import TableMismatchError
from trident.errors import OperationTypeError, PlanError, StateURLError, TridentError, UsageError

ORDERS = "order_id long, total double"


@dataclass
class Orders:
    """A folder of orders, each file a batch, and the table that they are written to."""

    spark: SparkSession
    folder: Path
    place: Place

    def add(self, *rows: tuple[int, float]) -> None:
        """Add a file."""
        source = self.folder / "orders"
        source.mkdir(exist_ok=True)
        lines = [json.dumps({"order_id": order, "total": total}) for order, total in rows]
        number = len(list(source.iterdir()))
        file = source / f"{number}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (number, number))  # by which Spark orders them

    def frame(self) -> Any:
        """The orders as a streaming DataFrame."""
        (self.folder / "orders").mkdir(exist_ok=True)
        reader = self.spark.readStream.schema(ORDERS).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder / "orders"))

    def write(self, frame: Any = None, **options: Any) -> trident.Run:
        """Write them all."""
        given = {"key": "order_id", "checkpoint": self.folder / "log", "trigger": "available"}
        given |= {"database": self.place.url, "table": self.place.table, **options}
        with trident.writeStream(self.frame() if frame is None else frame, **given) as run:
            run.awaitTermination()
        return run


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Orders:
    return Orders(spark, tmp_path, Place.at(f"sqlite:{tmp_path}/shop.db"))


def test_a_restart_goes_on_from_what_the_table_has(orders: Orders) -> None:
    orders.add((1, 9.5), (2, 3.0))
    run = orders.write()
    assert run.lastProgress is not None
    assert (run.lastProgress.group, run.lastProgress.keys_written) == (orders.place.table, 2)
    orders.add((2, 4.0), (3, 1.0))
    assert orders.write().figures()["groups"][0]["batches"] == 1
    assert orders.place.found() == [(1, 9.5), (2, 4.0), (3, 1.0)]


def test_a_frame_that_aggregates_gives_the_rows_that_changed(orders: Orders) -> None:
    orders.add((1, 9.5), (1, 3.0), (2, 1.0))
    orders.add((1, 1.0))
    summed = orders.frame().groupBy("order_id").sum("total")
    run = orders.write(summed, outputMode="update", columns={"sum(total)": "total"})
    assert [each.keys_written for each in run.groups[orders.place.table].recentProgress] == [2, 1]
    assert orders.place.found("order_id, total") == [(1, 13.5), (2, 1.0)]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"checkpoint": None}, UsageError, "from it the next start knows which rows"),
        ({"frame": 5}, OperationTypeError, "found 'int 5'"),
        ({"trigerr": 1}, PlanError, "Did you mean 'trigger'?"),
        ({"checkpoint": None, "checkpointLocation": "x"}, PlanError, "Did you mean 'checkpoint'?"),
        ({"orderby": "total"}, PlanError, "Did you mean 'order_by'?"),
        ({"mode": "upsrt"}, UsageError, "Did you mean 'upsert'?"),
        ({"key": "id"}, TableMismatchError, "no field fills; filled are: order_id, total"),
        ({"columns": {"totl": "x"}}, UsageError, "Did you mean 'total'?"),
        ({"database": "shop.db"}, StateURLError, "starts with a scheme"),
        ({"database": "jdbc:mysql://h/shop"}, StateURLError, "Leave out jdbc:"),
        ({"database": "oracle://x"}, StateURLError, "mysql, postgresql, sqlite"),
    ],
)
def test_each_mistake_is_one_error_that_says_what_to_do(
    orders: Orders, options: dict[str, Any], error: type[TridentError], says: str
) -> None:
    with pytest.raises(error, match="(?s).*") as raised:
        orders.write(**options)
    assert says in str(raised.value)


def test_a_batch_frame_and_one_that_aggregates_are_told_of_what_to_call(orders: Orders) -> None:
    with pytest.raises(OperationTypeError, match=r"spark\.readStream.*frame\.write\.jdbc"):
        orders.write(orders.spark.createDataFrame([(1, 2.0)], ORDERS))
    with pytest.raises(PlanError, match='outputMode="update"'):
        orders.write(orders.frame().groupBy("order_id").count())


def test_nested_columns_are_refused_with_what_makes_texts_of_them(orders: Orders) -> None:
    nested = orders.frame().selectExpr("order_id", "array(total) AS totals", "struct(total) AS s")
    with pytest.raises(TableMismatchError) as raised:
        orders.write(nested)
    assert str(raised.value).count("make it a text (to_json), or name its parts") == 2


def test_a_step_is_told_from_the_line_of_the_user(orders: Orders) -> None:
    doubled = orders.frame().selectExpr("order_id", "total AS a", "total AS A")
    with pytest.raises(PlanError, match=Path(__file__).name):
        orders.write(doubled)
