"""What a spout emits into."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from trident import Fields
from trident.errors import EmittedValueError
from trident.storm import SpoutCollector


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
    with pytest.raises(EmittedValueError, match="as the column n, where a list of values is due"):
        collector.emitColumns({"n": column})


def test_columns_whose_names_are_no_strings_are_an_error(collector: SpoutCollector) -> None:
    with pytest.raises(EmittedValueError, match="emitted the columns 1, n, where these are due: n"):
        collector.emitColumns({1: [1], "n": [1]})
