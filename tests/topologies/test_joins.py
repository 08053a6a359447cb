"""Joins of two streams and more, within a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import pytest

from tests.topologies.conftest import Engine, feed
from tests.topologies.generated import Rows, joined_rows
from tests.topologies.test_aggregates import carried
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.operations.builtin import Count
from trident.operations.joining import JoinOutFieldsMode, JoinType
from trident.spouts.feeder import FeederBatchSpout

INNER, OUTER = JoinType.INNER, JoinType.OUTER
COMPACT, PRESERVE = JoinOutFieldsMode.COMPACT, JoinOutFieldsMode.PRESERVE
LEFT: Rows = [("a", 1), ("a", 2), ("b", 3), (None, 4), ("d", 5)]
RIGHT: Rows = [(10.5, "a"), (20.5, "a"), (30.5, "c"), (None, None), (40.5, "d")]
THIRD: Rows = [("a", True), ("c", False), ("e", None), (None, True)]


def play(
    engine: Engine, join: Callable[[TridentTopology, list[Stream]], Stream], *streams: Rows
) -> list[Any]:
    """What a join makes of three streams, which have all of their tuples in one batch."""
    topology = TridentTopology()
    declared = ("k string, n long", "x double, key string", "word string, yes boolean")
    width = {"s": 0, "o": 1, "t": 2}
    spout = FeederBatchSpout("which string, k string, n long, x double, yes boolean")
    rows = [
        *(("s", k, n, None, None) for k, n in streams[0]),
        *(("o", key, None, x, None) for x, key in streams[1]),
        *(("t", word, None, None, yes) for word, yes in streams[2]),
    ]
    source = topology.newStream("source", spout)
    fields = {"s": "k, n", "o": "x, k", "t": "k, yes"}
    sides = [
        source.filter("which", lambda which, mine=name: which == mine)
        .project(fields[name])
        .map(lambda *values: values, declared[place])
        for name, place in width.items()
    ]
    captured = engine.capture(join(topology, sides))
    with engine.start(topology) as run:
        feed(run, spout, rows)
    return captured.tuples


def of(stream: Stream) -> TridentTopology:
    """The topology of a stream."""
    topology = TridentTopology()
    topology._builder = stream._builder
    return topology


TYPES = list(product([INNER, OUTER], repeat=2))


@pytest.mark.parametrize("types", TYPES, ids=str)
def test_two_streams_join_by_their_keys(engine: Engine, types: tuple[JoinType, ...]) -> None:
    def join(topology: TridentTopology, streams: list[Stream]) -> Stream:
        one, other, _ = streams
        return topology.join(one, "k", other, "key", "k, n, x", types)

    sides = [(LEFT, [0]), (RIGHT, [1])]
    required = [one is INNER for one in types]
    assert play(engine, join, LEFT, RIGHT, []) == sorted(
        joined_rows(sides, required, compact=True), key=repr
    )


def test_all_three_kinds_of_rows_are_as_expected(engine: Engine) -> None:
    """A join that is worked out by hand, as the other tests trust a model."""

    def join(topology: TridentTopology, streams: list[Stream]) -> Stream:
        one, other, _ = streams
        return topology.join(one, "k", other, "key", "k, n, x, key", OUTER, PRESERVE)

    assert play(engine, join, LEFT, RIGHT, []) == sorted(
        [
            *[("a", 1, 10.5, "a"), ("a", 1, 20.5, "a")],
            *[("a", 2, 10.5, "a"), ("a", 2, 20.5, "a")],
            *[("b", 3, None, None), (None, 4, None, None)],
            *[("d", 5, 40.5, "d")],
            *[(None, None, 30.5, "c"), (None, None, None, None)],
        ],
        key=repr,
    )


@pytest.mark.parametrize("mode", [COMPACT, PRESERVE])
@pytest.mark.parametrize(
    "types", [(INNER, INNER, INNER), (OUTER, INNER, OUTER), (OUTER, OUTER, INNER), (OUTER,) * 3]
)
def test_three_streams_join_at_once(
    engine: Engine, types: tuple[JoinType, ...], mode: JoinOutFieldsMode
) -> None:
    names = "k, n, x, yes" if mode is COMPACT else "k, n, x, key, word, yes"

    def join(topology: TridentTopology, streams: list[Stream]) -> Stream:
        keys = ["k", "key", "word"]
        return topology.join(streams, keys, names, JoinType.mixed(*types), mode)

    sides = [(LEFT, [0]), (RIGHT, [1]), (THIRD, [0])]
    required = [one is INNER for one in types]
    assert play(engine, join, LEFT, RIGHT, THIRD) == sorted(
        joined_rows(sides, required, compact=mode is COMPACT), key=repr
    )


def test_a_key_of_several_fields_equals_only_where_all_do(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        topology = of(stream)
        other = stream.project("b, a, n")
        return topology.join(stream, "a, b", other, ["b", "a"], "a, b, n, m", OUTER)

    rows = [("x", "y", 1), ("y", "x", 2), ("x", None, 3), (None, "x", 4), ("z", "z", 5)]
    [found] = carried(engine, "a string, b string, n long", step, rows)
    assert found == sorted(
        [
            *[("x", "y", 1, 2), ("y", "x", 2, 1), ("z", "z", 5, 5)],
            *[("x", None, 3, None), (None, "x", 4, None)],
            *[(None, "x", None, 3), ("x", None, None, 4)],
        ],
        key=repr,
    )


KEYS: Mapping[str, tuple[str, Sequence[Any]]] = {
    "doubles, of which zero has no sign": ("double", [0.0, -0.0, 1.5]),
    "numbers": ("long", [0, -1, 2**62]),
    "truth": ("boolean", [True, False, True]),
}


@pytest.mark.parametrize("name", KEYS)
def test_equal_keys_of_a_type_match(engine: Engine, name: str) -> None:
    kind, values = KEYS[name]

    def step(stream: Stream) -> Stream:
        topology = of(stream)
        return topology.join(stream, "k", stream, "k", "k, n, m").project("n, m")

    rows = [(value, n) for n, value in enumerate(values)]
    [found] = carried(engine, f"k {kind}, n long", step, rows)
    assert found == sorted(
        [(n, m) for (k, n), (other, m) in product(rows, rows) if k == other], key=repr
    )


@pytest.mark.parametrize("hint", [None, 1, 3])
def test_a_join_is_in_as_many_partitions_as_its_hint_says(engine: Engine, hint: int | None) -> None:
    def step(stream: Stream) -> Stream:
        topology = of(stream)
        spread = stream.shuffle().parallelismHint(4)
        made = topology.join(spread, "n", stream, "n", "n")
        made = made.parallelismHint(hint) if hint else made
        return made.partitionAggregate(Count(), "count")

    [found] = carried(engine, "n long", step, [(n,) for n in range(20)])
    assert sum(count for (count,) in found) == 20
    assert hint is None or len(found) == hint


def test_only_the_key_of_a_join_is_taken_on(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        topology = of(stream)
        return topology.join(stream, "n", stream, "n", "n, s, t").aggregate(Count(), "count")

    assert carried(engine, "n long, s string", step, [(1, "a"), (1, "b"), (2, "c")]) == [[(5,)]]


def test_a_query_joins_the_branches_of_its_stream() -> None:
    topology = TridentTopology()
    topology.newStream("s", FeederBatchSpout("n long")).aggregate(Count(), "n")
    words = topology.newDRPCStream("pairs").each("args", str.split, "word string")
    lengths = words.map(lambda args, word: (word, len(word)), "other string, n long")
    topology.join(words, "word", lengths, "other", "word, args, n").project("word, n")
    with topology.start() as run:
        assert sorted(eval(run.drpc.execute("pairs", "a bb"))) == [["a", 1], ["bb", 2]]


def test_nan_joins_itself_and_zero_both_of_its_signs(engine: Engine) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("x double, n long")
    source = topology.newStream("source", spout)
    joined = topology.join(source, "x", source.filter("n", lambda n: n > 1), "x", "x, n, m")
    captured = engine.capture(joined.project("n, m"))
    engine.play(topology, spout, [(float("nan"), 1), (float("nan"), 2), (-0.0, 3), (0.0, 4)])
    assert captured.tuples == [(1, 2), (2, 2), (3, 3), (3, 4), (4, 3), (4, 4)]
