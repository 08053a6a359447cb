"""What a spout emits into."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from trident import Fields
from trident.errors import EmittedValueError
from trident.storm import SpoutCollector
from trident.tuples.block import MANY


@pytest.fixture
def collector() -> SpoutCollector:
    return SpoutCollector("the spout of words", Fields("n"))


def test_a_column_may_be_changed_once_it_is_emitted(collector: SpoutCollector) -> None:
    reused = [1, 2]
    collector.emitColumns({"n": reused})
    reused[0] = 7
    collector.emitColumns({"n": reused})
    assert list(collector.block().values("n")) == [1, 2, 7, 2]


@pytest.mark.parametrize("column", [(1, 2), range(1, 3), array("q", [1, 2])], ids=type)
def test_a_column_is_any_sequence_of_values(collector: SpoutCollector, column: Any) -> None:
    collector.emitColumns({"n": column})
    found = collector.block().values("n")
    assert (list(found), set(map(type, found))) == ([1, 2], {int})


@pytest.mark.parametrize("column", ["ab", b"ab", {1, 2}, {1: 2}, iter([1]), 7, None])
def test_what_has_no_order_or_is_one_value_is_no_column(
    collector: SpoutCollector, column: Any
) -> None:
    with pytest.raises(EmittedValueError, match="as the column n, expected a list of values"):
        collector.emitColumns({"n": column})


def test_columns_whose_names_are_no_strings_are_an_error(collector: SpoutCollector) -> None:
    with pytest.raises(EmittedValueError, match="emitted the columns 1, n, expected n"):
        collector.emitColumns({1: [1], "n": [1]})


def test_a_large_column_of_arrow_stays_what_it_is() -> None:
    pa = pytest.importorskip("pyarrow")
    collector = SpoutCollector("the spout of rows", Fields("n", "word"))
    numbers = pa.chunked_array([list(range(MANY)), [7]])
    collector.emitColumns({"n": numbers, "word": ["a"] * (MANY + 1)})
    block = collector.block()
    assert block.arrow("n").equals(numbers.combine_chunks())
    assert block.arrow("word") is None
    assert block.values("n")[-2:] == [MANY - 1, 7]


def test_columns_of_arrow_that_python_has_in_another_form_become_its_values() -> None:
    pa = pytest.importorskip("pyarrow")
    collector = SpoutCollector("the spout of rows", Fields("n", "word"))
    words = pa.array(["a"] * MANY).dictionary_encode()
    collector.emitColumns(pa.record_batch([pa.array([1] * MANY, pa.int8()), words], ["n", "word"]))
    block = collector.block()
    assert (block.arrow("n"), block.arrow("word")) == (None, None)
    assert block.tuple_at(MANY - 1, ["n", "word"]) == (1, "a")


def test_numbers_of_arrow_may_be_changed_once_they_are_emitted() -> None:
    np, pa = pytest.importorskip("numpy"), pytest.importorskip("pyarrow")
    collector = SpoutCollector("the spout of numbers", Fields("n"))
    reused = np.full(MANY, 1)
    collector.emitColumns({"n": pa.array(reused)})
    reused[:] = 2
    collector.emitColumns(pa.record_batch([pa.array(reused)], ["n"]))
    reused[:] = 3
    block = collector.block()
    assert [block.values("n")[place] for place in (0, MANY - 1, MANY, -1)] == [1, 1, 2, 2]
