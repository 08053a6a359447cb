"""Columns of Arrow, emitted in the driver's process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from trident import Fields, SpoutCollector


@pytest.mark.parametrize("column", [pa.array([1, 2]), pa.chunked_array([[1], [2]])])
def test_a_column_of_arrow_is_emitted_as_python_values(column: Any) -> None:
    collector = SpoutCollector("the spout of words", Fields("n"))
    collector.emitColumns({"n": column})
    found = collector.block().values("n")
    assert (list(found), set(map(type, found))) == ([1, 2], {int})
