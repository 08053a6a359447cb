"""What is no ordinary number: each row of the table in docs/types.md, on both engines."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest

from tests.topologies.conftest import Engine, feed
from trident import Count, Max, Min, Sum, TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import OperationError
from trident.spouts.feeder import FeederBatchSpout

LONGEST = 2**63 - 1

ROWS: dict[str, tuple[list[Any], tuple[Any, ...]]] = {
    "NaN": ([nan, 1.0], (2, nan, 1.0, nan)),
    "NaN alone": ([nan], (1, nan, nan, nan)),
    "-0.0": ([-0.0], (1, 0.0, -0.0, -0.0)),
    "infinity": ([inf, 1.0], (2, inf, 1.0, inf)),
    "both infinities": ([inf, -inf], (2, nan, -inf, inf)),
    "a double that is too large": ([1e308, 1e308], (2, inf, 1e308, 1e308)),
    "null": ([None], (1, 0.0, None, None)),
    "null beside another": ([None, 1.5], (2, 1.5, 1.5, 1.5)),
}
"""Doubles, and their Count, Sum, Min and Max."""


@pytest.fixture(autouse=True)
def compiled_on_spark(engine: Engine, request: pytest.FixtureRequest) -> None:
    """Have Spark compute as it does for users."""
    if engine.spark is not None:
        request.getfixturevalue("compiled")


@pytest.mark.parametrize("few", [True, False], ids=["one partition", "several partitions"])
def test_aggregates_of_what_is_no_ordinary_number(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    monkeypatch.setattr("trident.spark.group_engine.SMALL", 1_000 if few else 1)
    topology = TridentTopology()
    spout = FeederBatchSpout("row string, x double")
    rows = topology.newStream("s", spout)
    found = {
        made: engine.capture(rows.groupBy("row").aggregate("x", made(), "made"), made.__name__)
        for made in (Sum, Min, Max)
    }
    found[Count] = engine.capture(rows.groupBy("row").aggregate(Count(), "made"), "Count")
    total = rows.groupBy("row").persistentAggregate(MemoryMapState.Factory(), "x", Sum(), "sum")
    sums = engine.capture(total.newValuesStream(), "new")
    engine.play(topology, spout, [(row, x) for row, (xs, _) in ROWS.items() for x in xs])
    for place, made in enumerate((Count, Sum, Min, Max)):
        expected = {row: repr(values[place]) for row, (_, values) in ROWS.items()}
        assert {row: repr(value) for row, value in found[made].tuples} == expected
    assert {row: repr(value) for row, value in sums.tuples} == {
        row: repr(values[1]) for row, (_, values) in ROWS.items()
    }


def test_a_sum_of_decimals_keeps_all_of_its_digits(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n decimal(38,18)")
    numbers = topology.newStream("s", spout)
    captured = engine.capture(numbers.aggregate("n", Sum(), "sum"))
    one = Decimal("12345678901234567890.000000000000000001")
    engine.play(topology, spout, [(one,), (one,)])
    assert captured.tuples == [(Decimal("24691357802469135780.000000000000000002"),)]


@pytest.mark.parametrize(
    ("kind", "values", "problem"),
    [
        ("long", [LONGEST, 1], "LongOverflowError: Sum(): "),
        ("long", [-LONGEST, -2], "LongOverflowError: Sum(): "),
        ("decimal(38,2)", [Decimal(10**35)] * 11, "'sum', which is declared decimal(38,2)"),
    ],
)
@pytest.mark.parametrize("kept", [True, False], ids=["in a state", "of a batch"])
def test_a_sum_that_is_too_large_stops_the_run(
    engine: Engine, kind: str, values: list[Any], problem: str, kept: bool
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout(f"k string, n {kind}")
    groups = topology.newStream("s", spout).groupBy("k")
    if kept:
        state = groups.persistentAggregate(MemoryMapState.Factory(), "n", Sum(), "sum")
        engine.capture(state.newValuesStream())
    else:
        engine.capture(groups.aggregate("n", Sum(), "sum"))
    batches = [[("a", value)] for value in values] if kept else [[("a", v) for v in values]]
    with engine.start(topology) as run, pytest.raises(OperationError) as caught:
        feed(run, spout, *batches)
    assert problem in caught.value.error
