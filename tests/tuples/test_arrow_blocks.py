"""Blocks with columns of Arrow, whatever their type and however long their values are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from trident.tuples import arrow_columns
from trident.tuples.block import Block

COLUMNS = [
    pa.array(["a", None, "c"]),
    pa.array(["a", None, "c"], pa.string_view()),
    pa.array([b"a", None, b"c"], pa.binary_view()),
    pa.array([[1], None, []], pa.list_view(pa.int64())),
    pa.array([[1], None, []]),
    pa.array(["a", None, "c"]).dictionary_encode(),
    pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", None])),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_tuples_are_kept_repeated_and_dealt_whatever_type_they_have(column: pa.Array) -> None:
    block, values = Block({}, 3, {"x": column}), column.to_pylist()
    assert list(block.kept([True, False, True], ["x"]).values("x")) == values[::2]
    assert list(block.repeated([2, 0, 1], ["x"]).values("x")) == [values[0], values[0], values[2]]
    assert list(block.every(2, 1).values("x")) == values[1::2]


def test_a_long_text_that_comes_often_is_in_memory_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_columns, "_MOST", 20)
    block = Block({}, 2, {"x": pa.array(["a" * 10, "b"])})
    assert block.repeated([2, 1], ["x"]).arrow("x") is None
    first, second, other = block.repeated([3, 1], ["x"]).values("x")[1:]
    assert (first is second, other) == (True, "b")
    assert block.repeated([1, 2], ["x"]).arrow("x") is not None
