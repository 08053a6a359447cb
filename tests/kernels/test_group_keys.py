"""Tuples are of one group exactly where their encoded keys are equal."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from trident.kernels.keys import group_keys, key_columns, shards_of_tuples
from trident.states.keys import encode_key
from trident.states.sharding import shard_of
from trident.tuples.block import Block

AUTUMN = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)

COLUMNS: dict[str, list[Any]] = {
    "floats": [0.0, -0.0, nan, float("nan"), inf, None, 1.5, 1.5],
    "booleans": [True, False, None, True],
    "decimals": [Decimal("1.50"), Decimal("1.5"), None, Decimal(0), Decimal("-0.0")],
    "bytes": [b"a", b"", None, b"a", b"\0[1.0]"],
    "UUIDs": [UUID(int=1), UUID(int=1), None],
    "dates": [date(2026, 1, 2), date(2026, 1, 2), None],
    "moments": [NOON, NOON.replace(tzinfo=None), NOON, None],
    "moments of an hour that comes twice": [AUTUMN, AUTUMN.replace(fold=1), AUTUMN],
    "arrays": [[1], [1.0], [1], None, [True]],
    "structs": [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": True, "b": 2}],
    "all sorts": [1, 1.0, True, Decimal(1), b"1", "1", 1.0, None, date(2026, 7, 1), NOON, nan, nan],
}


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS.keys())
@pytest.mark.parametrize("group", [["x"], ["x", "y"]], ids=["one field", "two fields"])
def test_groups_are_those_of_the_encoded_keys(values: list[Any], group: list[str]) -> None:
    block = Block({"x": values, "y": ["a"] * len(values)}, len(values))
    found = list(group_keys(block, group))
    encoded = [encode_key(key) for key in block.tuples(group)]
    for one in range(len(values)):
        for other in range(len(values)):
            same = encoded[one] == encoded[other]
            assert (found[one] == found[other]) is same, (values[one], values[other])
            assert not same or hash(found[one]) == hash(found[other])
    columns = key_columns(group, found)
    assert [encode_key(key) for key in zip(*columns.values(), strict=True)] == encoded


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS.keys())
@pytest.mark.parametrize("group", [["x"], ["x", "y"]], ids=["one field", "two fields"])
def test_a_group_is_the_same_in_whatever_block_its_tuples_are(
    values: list[Any], group: list[str]
) -> None:
    together = Block({"x": values, "y": ["a"] * len(values)}, len(values))
    alone = [group_keys(Block({"x": [value], "y": ["a"]}, 1), group)[0] for value in values]
    assert list(group_keys(together, group)) == alone
    assert list(map(hash, group_keys(together, group))) == list(map(hash, alone))


def test_a_group_goes_on_with_the_digits_of_its_decimal_and_without_the_sign_of_zero() -> None:
    block = Block({"x": [Decimal("1.50"), -0.0, [-0.0]]}, 3)
    assert repr(key_columns(["x"], group_keys(block, ["x"]))) == (
        "{'x': [Decimal('1.50'), 0.0, [0.0]]}"
    )


ARRAYS = {
    "texts": pa.array(["", "a", None, "\0", "\0a", "a"]),
    "floats": pa.array([0.0, -0.0, nan, -nan, inf, None]),
    "bools": pa.array([True, None, False]),
    "longs": pa.array([1, None, -(2**63)]),
    "arrays": pa.array([[1], None, [1]]),
    "structs": pa.array([{"a": 1}, None, {"a": 1}]),
    "decimals": pa.array([Decimal("1.50"), Decimal("1.40"), None]),
    "moments": pa.array([NOON, None, AUTUMN], pa.timestamp("us", "Europe/Berlin")),
    "a dictionary": pa.array(["a", None, "b", "a"]).dictionary_encode(),
}


@pytest.mark.parametrize("column", ARRAYS.values(), ids=ARRAYS.keys())
@pytest.mark.parametrize("start", [0, 1])
def test_a_column_of_arrow_is_sharded_by_the_encoded_keys(column: pa.Array, start: int) -> None:
    block = Block({}, len(column) - start, {"x": column[start:]})
    encoded = list(map(encode_key, block.tuples(["x"])))
    assert shards_of_tuples(block, ["x"], 7) == [shard_of(key, 7) for key in encoded]
