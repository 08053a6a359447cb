"""Streams that meet have one type for each field: structs by name, the wider decimal."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.topologies.conftest import Engine
from trident import Count, JoinOutFieldsMode, JoinType, TridentCollector, TridentTopology
from trident.api.stream import Stream
from trident.errors import FieldError
from trident.spouts.feeder import FeederBatchSpout
from trident.storm import GroupedMultiReducer

XY, YX = "struct<x:long,y:long>", "struct<y:long,x:long>"
ONE = {"x": 1, "y": 2}
MEETING = {
    "structs": (XY, YX, ONE, ONE),
    "structs in an array": (f"array<{XY}>", f"array<{YX}>", [ONE, None], [ONE, None]),
    "structs in a map": (f"map<string,{XY}>", f"map<string,{YX}>", {"k": ONE}, {"k": ONE}),
    "structs in a struct": (
        f"struct<a:{XY},b:array<{XY}>>",
        f"struct<b:array<{YX}>,a:{YX}>",
        {"a": ONE, "b": [ONE]},
        {"a": ONE, "b": [ONE]},
    ),
    "structs with names that need quotes": (
        "struct<`a b`:long,`c.d`:long>",
        "struct<`c.d`:long,`a b`:long>",
        {"a b": 1, "c.d": 2},
        {"a b": 1, "c.d": 2},
    ),
    "structs with decimals": (
        "struct<x:decimal(4,1),y:long>",
        "struct<y:int,x:decimal(9,3)>",
        {"x": Decimal("1.5"), "y": 2},
        {"x": Decimal("1.500"), "y": 2},
    ),
    "decimals": ("decimal(9,2)", "decimal(10,4)", Decimal("1.50"), Decimal("1.5000")),
    "decimals in an array": (
        "array<decimal(9,2)>",
        "array<decimal(38,18)>",
        [Decimal("1.50"), None],
        [Decimal("1.500000000000000000"), None],
    ),
    "whole numbers": ("int", "long", 7, 7),
    "texts": ("varchar(9)", "string", "a", "a"),
}


def sides(topology: TridentTopology, first: str, second: str, value: Any) -> tuple[Any, ...]:
    """Two streams with a number and one value, which is declared in two ways; and their spout."""
    spout = FeederBatchSpout("n long")
    source = topology.newStream("source", spout)

    def side(number: int, kind: str) -> Stream:
        some = source.filter("n", lambda n: n in (number, 3))
        return some.map(lambda n: (n, None if n == 3 else value), f"n long, v {kind}")

    return side(1, first), side(2, second), spout


@pytest.mark.singles
@pytest.mark.parametrize("case", MEETING)
@pytest.mark.parametrize("turned", [False, True])
def test_merged_values_are_put_together_by_name_in_the_wider_type(
    engine: Engine, case: str, turned: bool
) -> None:
    first, second, value, expected = MEETING[case]
    if turned:
        first, second = second, first
    topology = TridentTopology()
    one, other, spout = sides(topology, first, second, value)
    merged = topology.merge(one, other)
    captured = engine.capture(merged)
    engine.play(topology, spout, [(1,), (2,), (3,)])
    assert captured.tuples == [(1, expected), (2, expected), (3, None), (3, None)]
    assert len({repr(v) for n, v in captured.tuples if n < 3}) == 1  # digits and order, too


KEYS = [case for case, (kind, *_) in MEETING.items() if not kind.startswith("map")]


@pytest.mark.singles
@pytest.mark.parametrize("case", KEYS)
@pytest.mark.parametrize("mode", JoinOutFieldsMode)
def test_keys_of_other_orders_and_digits_are_joined(
    engine: Engine, case: str, mode: JoinOutFieldsMode
) -> None:
    first, second, value, expected = MEETING[case]
    topology = TridentTopology()
    one, other, spout = sides(topology, first, second, value)
    compact = mode is JoinOutFieldsMode.COMPACT
    fields = "v, n, m" if compact else "n, v, m, w"
    joined = topology.join(one, "v", other, "v", fields, [JoinType.OUTER] * 2, mode)
    captured = engine.capture(joined)
    engine.play(topology, spout, [(1,), (2,)], [(2,)])
    if compact:
        assert captured.batches == [[(expected, 1, 2)], [(expected, None, 2)]]
        assert len({repr(v) for v, *_ in captured.tuples}) == 1
    else:
        assert captured.batches == [[(1, value, 2, value)], [(None, None, 2, value)]]


class Sides(GroupedMultiReducer[list[int]]):
    output_types = (int, int)

    def init(self, collector: TridentCollector, group: Any) -> list[int]:
        return [0, 0]

    def execute(self, state: Any, streamIndex: int, group: Any, input: Any, collector: Any) -> Any:
        state[streamIndex] += 1
        return state

    def complete(self, state: Any, group: Any, collector: TridentCollector) -> None:
        collector.emit(state)


def test_keys_of_other_orders_and_digits_are_reduced_together(engine: Engine) -> None:
    first, second, value, _ = MEETING["structs with decimals"]
    topology = TridentTopology()
    one, other, spout = sides(topology, first, second, {**value, "x": Decimal("1.5")})
    streams = [one.groupBy("v"), other.groupBy("v")]
    captured = engine.capture(topology.multiReduce([["n"]] * 2, streams, Sides(), "a, b"))
    engine.play(topology, spout, [(1,), (2,)])
    assert captured.tuples == [(1, 1)]


def test_a_group_of_merged_decimals_is_one_key(engine: Engine) -> None:
    topology = TridentTopology()
    one, other, spout = sides(topology, "decimal(9,2)", "decimal(10,4)", Decimal("1.50"))
    counted = topology.merge(one, other).groupBy("v").aggregate(Count(), "count")
    captured = engine.capture(counted)
    engine.play(topology, spout, [(1,), (2,)])
    assert repr(captured.tuples) == repr([(Decimal("1.5000"), 2)])


@pytest.mark.parametrize("call", ["merge", "join", "multiReduce"])
def test_decimals_without_a_type_for_both_are_refused_when_declared(call: str) -> None:
    topology = TridentTopology()
    one, other, _ = sides(topology, "decimal(38,0)", "decimal(38,18)", Decimal(1))
    calls: dict[str, Any] = {
        "merge": lambda: topology.merge(one, other),
        "join": lambda: topology.join(one, "v", other, "v", "v, n, m"),
        "multiReduce": lambda: topology.multiReduce(
            [["n"]] * 2, [one.groupBy("v"), other.groupBy("v")], Sides(), "a, b"
        ),
    }
    both = r"'v' \(decimal\(38,0\)\) and 'v' \(decimal\(38,18\)\)"
    with pytest.raises(FieldError, match=f"{call}: {both} can't be one field. No decimal"):
        calls[call]()


def test_a_third_stream_widens_further() -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    source = topology.newStream("source", spout)
    kinds = ["decimal(9,2)", "decimal(20,0)", "decimal(9,9)"]
    merged = topology.merge(*(source.map(lambda n: n, f"v {kind}") for kind in kinds))
    assert merged.getOutputFields().types["v"] == "decimal(29,9)"
