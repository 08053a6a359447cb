"""Rows that the table refuses where tasks of Spark's load them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import trident
from tests.backends.rows.databases import Place
from trident.backends.rows import RefusedRowError


def test_tasks_name_the_rows_that_are_refused_and_put_them_aside(
    spark: SparkSession, tmp_path: Path, postgres_server: Any
) -> None:
    place = Place.at(postgres_server.url)
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, what VARCHAR(3), CHECK (id <> 5))")
    (tmp_path / "in").mkdir()
    bad = {3: (None, "key"), 5: (5, "no"), 8: (8, "long")}
    tuples = [(*bad.get(n, (n, "ok")), n, "east" if n % 2 else "west") for n in range(12)]
    names = ("id", "what", "seen", "region")
    lines = [json.dumps(dict(zip(names, each, strict=True))) for each in tuples]
    (tmp_path / "in/1.json").write_text("\n".join(lines))
    schema = "id long, what string, seen long, region string"
    frame = spark.readStream.schema(schema).json(str(tmp_path / "in")).repartition(2, "region")

    def write(on_bad_row: Any) -> None:
        with trident.writeStream(
            *(frame, place.url, place.table, "id"),
            checkpoint=tmp_path / "log",
            on_bad_row=on_bad_row,
            columns={"seen": None, "region": None},
            partitionFields="region",
            trigger="available",
            engine="spark",
        ) as run:
            run.awaitTermination()

    with pytest.raises(RefusedRowError) as raised:
        write("fail")
    assert (raised.value.column, raised.value.row) in [
        ("id", "id=None, what='key'"),
        ("what", "id=8, what='long'"),
    ]
    assert raised.value.position.startswith("batch 1, attempt 0, seen=")
    assert place.found() == []
    write("dead-letter")
    assert place.column("id") == [n for n in range(12) if n not in bad]
    told = place.query(
        "SELECT row_json, source FROM trident_bad_rows WHERE state = '{table}' ORDER BY source"
    )
    assert [(tuple(json.loads(row).values()), source) for row, source in told] == [
        (bad[n], f"seen={n}, region={region}, origin={place.table}/{region}")
        for n, region in [(3, "east"), (5, "east"), (8, "west")]
    ]
