"""The first screen of docs/rows.md: one call writes what the function by hand writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

import trident
from tests.kafka.broker import Broker
from tests.packaging.conftest import ROOT
from trident.testing.servers.promised import Served

PAGE = (ROOT / "docs" / "rows.md").read_text()
URL = "postgresql://localhost:5432/shop"
ORDERS = [(1, "Ann", 10.0), (2, "Bob", 20.5), (3, "Eve", None)]


def programs(page: str) -> list[str]:
    """The code of a page that needs a stream and a database."""
    return re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture
def shop(postgres_server: Served) -> Iterator[str]:
    """The URL of a database of the test's own."""
    import psycopg

    name = f"shop{uuid4().hex[:8]}"
    with psycopg.connect(postgres_server.url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield f"{postgres_server.url.rpartition('/')[0]}/{name}"
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def found(url: str, table: str = "orders") -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()  # type: ignore[arg-type]


@pytest.mark.spark
def test_one_call_writes_what_the_function_by_hand_writes(
    spark: SparkSession, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    names = ("order_id", "customer", "total")
    (tmp_path / "orders").mkdir()
    lines = [json.dumps(dict(zip(names, order, strict=True))) for order in ORDERS]
    (tmp_path / "orders" / "first").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    given = spark.readStream.schema("order_id long, customer string, total double")
    program: dict[str, Any] = {"orders": given.json(f"file://{tmp_path}/orders")}
    by_hand, instead, _ = programs(PAGE)
    with psycopg.connect(shop) as connection:
        columns = "order_id bigint PRIMARY KEY, customer text, total double precision"
        connection.execute(f"CREATE TABLE orders ({columns})")

    assert URL in by_hand
    exec(by_hand.replace(URL, shop).replace("by-hand", f"file://{tmp_path}/by-hand"), program)
    program["query"].processAllAvailable()
    program["query"].stop()
    assert found(shop) == ORDERS
    with psycopg.connect(shop) as connection:
        connection.execute("DROP TABLE orders")

    exec(instead, program)
    with program["run"] as run:
        run.processAllAvailable()
    assert found(shop) == ORDERS


@pytest.mark.spark
def test_a_table_is_mirrored_from_what_debezium_writes(
    spark_with_kafka: SparkSession,
    kafka_broker: Served,
    shop: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ann, bob, anna = [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}, {"id": 1, "name": "Anna"}]
    events = [(None, ann, "r"), (None, bob, "c"), (ann, anna, "u"), (bob, None, "d")]
    values = [
        json.dumps(dict(zip(("before", "after", "op"), each, strict=True))) for each in events
    ]
    broker = Broker(kafka_broker.url)
    topic = broker.topic()
    broker.produce(topic, [*values, None])
    monkeypatch.chdir(tmp_path)
    mirror = programs(PAGE)[2].replace("localhost:9092", broker.servers)
    program = {"spark": spark_with_kafka, "trident": trident, "URL": shop}
    exec(mirror.replace("shop.public.customers", topic), program)
    with cast(trident.Run, program["run"]) as run:
        run.processAllAvailable()
    assert found(shop, "customers") == [(1, "Anna")]


def test_the_readme_shows_the_same_call() -> None:
    assert programs((ROOT / "README.md").read_text()) == programs(PAGE)[1:2]
