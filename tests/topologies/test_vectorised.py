"""Functions of whole record batches, the same on both engines."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.topologies.conftest import Engine
from tests.topologies.test_aggregates import carried
from trident import vectorised
from trident.api.stream import Stream
from trident.errors import OperationError
from trident.operations.builtin import Count, Sum

Made = Callable[[pa.RecordBatch], Any]


def more(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each tuple twice, the second time with its number raised."""
    raised = pc.add(batch["n"], 1)
    columns = [pa.concat_arrays([batch["s"]] * 2), pa.concat_arrays([batch["n"], raised])]
    return pa.record_batch(columns, ["any", "name"])


def none(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.slice(0, 0)


def same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def test_record_batches_are_replaced_and_columns_taken_by_position(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        return stream.flatMap(vectorised(more), "word string, m long")

    [found] = carried(engine, "s string, n long", step, [("a", 1), (None, 5)])
    assert found == sorted([("a", 1), ("a", 2), (None, 5), (None, 6)], key=repr)


def test_steps_of_tuples_stand_before_and_after(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        words = stream.map(lambda s, n: (f"{s}!", n * 10), "s string, n long")
        made = words.flatMap(vectorised(more), "s string, n long").filter("n", lambda n: n % 2 == 1)
        return made.flatMap(vectorised(same)).each("s", lambda s: [len(s)], "length long")

    [found] = carried(engine, "s string, n long", step, [("a", 1), ("bc", 2)])
    assert found == [("a!", 11, 2), ("bc!", 21, 3)]


def test_what_is_made_is_grouped(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        made = stream.flatMap(vectorised(more), "s string, n long")
        return made.groupBy("s").aggregate("n", Sum(), "sum")

    [found] = carried(engine, "s string, n long", step, [("a", 1), ("b", 2), ("a", 3)])
    assert found == [("a", 10), ("b", 5)]


def test_no_tuples_are_no_call_and_may_come_out(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        return stream.flatMap(vectorised(none)).aggregate(Count(), "count")

    rows = [("a", 1)]
    assert carried(engine, "s string, n long", step, rows, []) == [[(0,)], [(0,)]]


VALUES: list[tuple[str, Any]] = [
    ("long", 2**62),
    ("int", 7),
    ("double", 0.5),
    ("boolean", True),
    ("string", "ä🙂"),
    ("binary", b"\0\xff"),
    ("date", datetime.date(2024, 2, 29)),
    ("decimal(9,2)", Decimal("12.30")),
    ("array<long>", [1, 2]),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_values_of_a_type_pass_unchanged(engine: Engine, kind: str, value: Any) -> None:
    def step(stream: Stream) -> Stream:
        return stream.flatMap(vectorised(same))

    [found] = carried(engine, f"v {kind}", step, [(value,), (None,)])
    assert found == sorted([(value,), (None,)], key=repr)


def test_a_function_sees_one_arrow_type_on_both_engines(engine: Engine) -> None:
    def kinds(batch: pa.RecordBatch) -> pa.RecordBatch:
        shown = ", ".join(f"{field.name} {field.type}" for field in batch.schema)
        return pa.record_batch([[shown]], ["kinds"])

    fields = "a long, b int, c string, d date, e timestamp, f binary, g decimal(9,2)"

    def step(stream: Stream) -> Stream:
        return stream.flatMap(vectorised(kinds), "k string")

    [[(found,)]] = carried(engine, fields, step, [(None,) * 7])
    assert found == (
        "a int64, b int32, c string, d date32[day], e timestamp[us, tz=UTC], f binary, "
        "g decimal128(9, 2)"
    )


def test_numbers_of_another_size_fit_where_they_lose_nothing(engine: Engine) -> None:
    def small(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([pa.array([1, 2], pa.int8()), pa.array([3, 4])], ["a", "b"])

    def step(stream: Stream) -> Stream:
        return stream.flatMap(vectorised(small), "a long, b double")

    assert carried(engine, "n long", step, [(0,)]) == [[(1, 3.0), (2, 4.0)]]


WRONG: list[tuple[Made, str]] = [
    (lambda batch: [1], r"returned list \[1\], expected a pyarrow\.RecordBatch"),
    (lambda batch: batch.select([]), "returned 0 columns for 1 output fields"),
    (
        lambda batch: pa.record_batch([["x"]], ["v"]),
        "returned string for the field 'v', which is declared long: cast it",
    ),
    (
        lambda batch: pa.record_batch([pa.array([2**63], pa.uint64())], ["v"]),
        "returned uint64 for the field 'v', which is declared long",
    ),
    (lambda batch: batch["absent"], "absent"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_does_not_fit_is_named_with_its_step(engine: Engine, number: int) -> None:
    function, text = WRONG[number]
    with pytest.raises(OperationError, match=text) as raised:
        carried(engine, "n long", lambda s: s.flatMap(vectorised(function), "v long"), [(1,)])
    assert "flatMap(vectorised(<lambda>), v)" in str(raised.value)
