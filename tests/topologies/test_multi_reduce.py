"""Several streams that one reducer takes in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.topologies import sentences
from tests.topologies.conftest import Engine, feed
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.errors import OperationError
from trident.operations.interfaces import (
    GroupedMultiReducer,
    MultiReducer,
    TridentCollector,
    TridentOperationContext,
)
from trident.spouts.feeder import FeederBatchSpout

CLICKS = [("a", 1), ("b", 2), ("a", 3), (None, 4)]
VIEWS = [(2.5, "a"), (3.5, None), (4.5, "c")]


class Sums(MultiReducer[tuple[int, float]]):
    """The sum of each stream, in a value that is handed on; and every negative number at once."""

    output_types = (int, float, bool)

    def prepare(self, conf: object, context: TridentOperationContext) -> None:
        self.ready = True

    def init(self, collector: TridentCollector) -> tuple[int, float]:
        return 0, 0.0

    def execute(
        self, state: tuple[int, float], streamIndex: int, input: Any, collector: TridentCollector
    ) -> tuple[int, float] | None:
        if streamIndex == 0:
            return state[0] + input.getLongByField("n"), state[1]
        return state[0], state[1] + input["x"]

    def complete(self, state: tuple[int, float], collector: TridentCollector) -> None:
        collector.emit([*state, self.ready])


class Beside(GroupedMultiReducer[tuple[list[int], list[float]]]):
    """What each group has in both streams."""

    output_types = ("string", "string", "string")

    def init(self, collector: TridentCollector, group: Any) -> tuple[list[int], list[float]]:
        return [], []

    def execute(
        self, state: Any, streamIndex: int, group: Any, input: Any, collector: TridentCollector
    ) -> None:
        if input[0] == 99:
            raise ValueError("ninety-nine")
        state[streamIndex].append(input[0])

    def complete(self, state: Any, group: Any, collector: TridentCollector) -> None:
        collector.emit([group["ad"], *(str(sorted(values)) for values in state)])


def play(engine: Engine, reduce: Any, clicks: list[Any], views: list[Any]) -> list[list[Any]]:
    topology = TridentTopology()
    spout = FeederBatchSpout("ad string, n long, x double")
    source = topology.newStream("both", spout)
    one = source.filter("n", lambda n: n is not None).project("ad, n")
    other = source.filter("x", lambda x: x is not None)
    other = other.map(lambda ad, n, x: (x, ad), "x double, place string")
    captured = engine.capture(reduce(topology, one, other))
    with engine.start(topology) as run:
        feed(
            run,
            spout,
            [*((ad, n, None) for ad, n in clicks), *((place, None, x) for x, place in views)],
        )
    return captured.batches


def test_all_tuples_of_streams_meet_in_one_reducer(engine: Engine) -> None:
    def reduce(topology: TridentTopology, one: Stream, other: Stream) -> Stream:
        spread = one.shuffle().parallelismHint(3)
        return topology.multiReduce(spread, other, Sums(), "clicks, views, ready")

    assert play(engine, reduce, CLICKS, VIEWS) == [[(10, 10.5, True)]]


def test_a_batch_without_tuples_is_reduced_too(engine: Engine) -> None:
    def reduce(topology: TridentTopology, one: Stream, other: Stream) -> Stream:
        return topology.multiReduce([one, other], Sums(), "clicks, views, ready")

    assert play(engine, reduce, [], []) == [[(0, 0.0, True)]]


def test_groups_are_reduced_with_the_fields_that_are_named(engine: Engine) -> None:
    def reduce(topology: TridentTopology, one: Stream, other: Stream) -> Stream:
        groups = [one.groupBy("ad"), other.groupBy("place")]
        return topology.multiReduce(["n", "x"], groups, Beside(), "ad, clicks, views")

    assert play(engine, reduce, CLICKS, VIEWS) == [
        sorted(
            [
                ("a", "[1, 3]", "[2.5]"),
                ("b", "[2]", "[]"),
                ("c", "[]", "[4.5]"),
                (None, "[4]", "[3.5]"),
            ],
            key=repr,
        )
    ]


def test_an_error_names_the_reducer(engine: Engine) -> None:
    def reduce(topology: TridentTopology, one: Stream, other: Stream) -> Stream:
        groups = one.groupBy("ad"), other.groupBy("place")
        return topology.multiReduce("n", groups[0], "x", groups[1], Beside(), "ad, clicks, views")

    with pytest.raises(OperationError, match=r"(?s)ninety-nine.*Beside\(\)"):
        play(engine, reduce, [("a", 99)], [])


def test_only_what_is_named_comes_out() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    made = topology.multiReduce(stream, stream, Sums(), "a, b, c")
    assert repr(made.getOutputFields()) == "Fields('a long, b double, c boolean')"
    groups = stream.groupBy("id")
    made = topology.multiReduce(groups, groups, Beside(), "ad, clicks, views")
    assert made.getOutputFields().names == ("ad", "clicks", "views")
