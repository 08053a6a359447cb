"""Arrow's columns that a spout emits in this process."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from trident import Fields
from trident.storm import SpoutCollector

MAP = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
MOMENT = pa.array([0, None], pa.timestamp("us", "Europe/Berlin"))


@pytest.mark.parametrize(
    ("column", "values"),
    [(MAP, [{"a": 1}, None]), (MOMENT, [datetime(1970, 1, 1, tzinfo=UTC), None])],
)
def test_values_of_arrow_are_what_executors_make_of_them(
    column: pa.Array, values: list[Any]
) -> None:
    collector = SpoutCollector("the spout of words", Fields("n"))
    batch = pa.record_batch([column], ["n"])
    for columns in (batch, {"n": column}, pa.Table.from_batches([batch])):
        collector.emitColumns(columns)
    assert list(map(repr, collector.block().values("n"))) == list(map(repr, values * 3))
