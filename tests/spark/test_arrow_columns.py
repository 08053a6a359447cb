"""Columns of Arrow, emitted in the driver's process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from trident import Fields
from trident.kernels.arrow_block import block_of_table
from trident.storm import SpoutCollector


@pytest.mark.parametrize("column", [pa.array([1, 2]), pa.chunked_array([[1], [2]])])
def test_a_column_of_arrow_is_emitted_as_python_values(column: Any) -> None:
    collector = SpoutCollector("the spout of words", Fields("n"))
    collector.emitColumns({"n": column})
    found = collector.block().values("n")
    assert (list(found), set(map(type, found))) == ([1, 2], {int})


def test_a_block_of_arrow_takes_the_bytes_of_its_columns_and_of_those_that_steps_made() -> None:
    block = block_of_table(pa.table({"n": pa.array(range(1000), pa.int64())}))
    assert block.nbytes == 8000
    assert block.added({"text": ["x" * 1000] * 1000}).nbytes > 1_008_000
