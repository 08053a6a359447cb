"""Fluent calls take their arguments by name too, as they are documented."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_overloads

import pytest

from trident import (
    Count,
    FixedBatchSpout,
    MapGet,
    MemoryMapState,
    Stream,
    Sum,
    TridentTopology,
    TumblingCountWindow,
)
from trident.api.stream import ChainedAggregatorDeclarer, GroupedStream
from trident.errors import OperationTypeError, PlanError
from trident.operations.state_updaters import MapCombinerAggStateUpdater


def sales() -> tuple[TridentTopology, Stream]:
    topology = TridentTopology()
    return topology, topology.newStream("sales", FixedBatchSpout("shop string, eur long", 3))


def state() -> MemoryMapState.Factory:
    return MemoryMapState.Factory()


CALLS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "each, a function": (
        lambda t, s: s.each("shop", str.split, "word string"),
        lambda t, s: s.each(inputs="shop", function=str.split, outputs="word string"),
    ),
    "each, outputs alone": (
        lambda t, s: s.each("shop", str.split, "word string"),
        lambda t, s: s.each("shop", str.split, outputs="word string"),
    ),
    "each, inputs by position": (
        lambda t, s: s.each("shop", str.split, "word string"),
        lambda t, s: s.each("shop", function=str.split, outputs="word string"),
    ),
    "each, a filter": (
        lambda t, s: s.each("shop", str.isascii),
        lambda t, s: s.each(filter=str.isascii, inputs="shop"),
    ),
    "filter": (
        lambda t, s: s.filter("shop", str.isascii),
        lambda t, s: s.filter(inputs="shop", filter=str.isascii),
    ),
    "aggregate": (
        lambda t, s: s.aggregate("eur", Sum(), "total"),
        lambda t, s: s.aggregate(inputs="eur", aggregator=Sum(), outputs="total"),
    ),
    "aggregate without inputs": (
        lambda t, s: s.aggregate(Count(), "n"),
        lambda t, s: s.aggregate(aggregator=Count(), outputs="n"),
    ),
    "each of groups": (
        lambda t, s: s.groupBy("shop").each("eur", str, "text string").aggregate(Count(), "n"),
        lambda t, s: (
            s.groupBy("shop")
            .each(inputs="eur", function=str, outputs="text string")
            .aggregate(aggregator=Count(), outputs="n")
        ),
    ),
    "partitionAggregate of groups": (
        lambda t, s: s.groupBy("shop").partitionAggregate("eur", Sum(), "total").toStream(),
        lambda t, s: (
            s.groupBy("shop")
            .partitionAggregate(inputs="eur", aggregator=Sum(), outputs="total")
            .toStream()
        ),
    ),
    "persistentAggregate": (
        lambda t, s: s.groupBy("shop").persistentAggregate(state(), "eur", Sum(), "total"),
        lambda t, s: s.groupBy("shop").persistentAggregate(
            state=state(), inputs="eur", aggregator=Sum(), outputs="total"
        ),
    ),
    "partitionPersist": (
        lambda t, s: s.partitionPersist(
            state(), "shop, eur", MapCombinerAggStateUpdater(Sum(), ["shop"], "eur")
        ),
        lambda t, s: s.partitionPersist(
            state(),
            inputs="shop, eur",
            updater=MapCombinerAggStateUpdater(Sum(), ["shop"], "eur"),
        ),
    ),
    "window": (
        lambda t, s: s.window(TumblingCountWindow.of(3), state(), "eur", Sum(), "total"),
        lambda t, s: s.window(
            config=TumblingCountWindow.of(3),
            store=state(),
            inputs="eur",
            aggregator=Sum(),
            outputs="total",
        ),
    ),
    "tumblingWindow": (
        lambda t, s: s.tumblingWindow(3, state(), Count(), "n"),
        lambda t, s: s.tumblingWindow(3, store=state(), aggregator=Count(), outputs="n"),
    ),
    "slidingWindow": (
        lambda t, s: s.slidingWindow(3, 1, state(), Count(), "n"),
        lambda t, s: s.slidingWindow(
            length=3, slide=1, store=state(), aggregator=Count(), outputs="n"
        ),
    ),
    "a chain": (
        lambda t, s: s.chainedAgg().aggregate(Count(), "n").aggregate("eur", Sum(), "m").chainEnd(),
        lambda t, s: (
            s.chainedAgg()
            .aggregate(aggregator=Count(), outputs="n")
            .aggregate(inputs="eur", aggregator=Sum(), outputs="m")
            .chainEnd()
        ),
    ),
    "stateQuery": (
        lambda t, s: s.stateQuery(t.newStaticState(state()), "shop", MapGet(), "found long"),
        lambda t, s: s.stateQuery(
            state=t.newStaticState(state()), inputs="shop", function=MapGet(), outputs="found long"
        ),
    ),
    "merge": (
        lambda t, s: t.merge("a, b", s, s.shuffle()),
        lambda t, s: t.merge(s, s.shuffle(), outputs="a, b"),
    ),
    "join": (
        lambda t, s: t.join(s, "shop", s.shuffle(), "shop", "shop, a, b"),
        lambda t, s: t.join(
            one=s, oneFields="shop", other=s.shuffle(), otherFields="shop", outputs="shop, a, b"
        ),
    ),
    "join of a list": (
        lambda t, s: t.join([s, s.shuffle()], ["shop", "shop"], "shop, a, b"),
        lambda t, s: t.join(
            streams=[s, s.shuffle()], fields=["shop", "shop"], outputs="shop, a, b"
        ),
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_arguments_by_name_make_the_same_plan_as_by_position(call: str) -> None:
    plans = []
    for declare in CALLS[call]:
        topology, stream = sales()
        declare(topology, stream)
        plans.append([node.call_text for node in topology.plan().nodes])
    assert plans[0] == plans[1]


@pytest.mark.parametrize(
    ("declare", "error", "text"),
    [
        (lambda s: s.each(input="shop", filter=str), PlanError, "no argument 'input'.*'inputs'"),
        (lambda s: s.aggregate(Sum(), "n", filter=str), PlanError, "no argument 'filter'"),
        (lambda s: s.each(filter=str, outputs="a"), OperationTypeError, "no output fields, found"),
        (lambda s: s.each(function=str, inputs="shop"), OperationTypeError, "no output fields for"),
        (lambda s: s.each("shop", str, "a", outputs="b"), OperationTypeError, "4 arguments"),
        (lambda s: s.aggregate(outputs="n"), OperationTypeError, "takes .inputs,. aggregator"),
        (lambda s: s.window(aggregator=Sum()), OperationTypeError, "takes config, store first"),
    ],
)
def test_a_wrong_name_is_told(
    declare: Callable[[Stream], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        declare(sales()[1])


@pytest.mark.parametrize(
    "owner", [Stream, GroupedStream, ChainedAggregatorDeclarer, TridentTopology]
)
def test_a_call_that_takes_any_arguments_says_which_by_overloads(owner: type) -> None:
    """An editor shows the overloads, and a type checker holds callers to them."""
    for name, call in inspect.getmembers(owner, inspect.isfunction):
        kinds = [each.kind for each in inspect.signature(call).parameters.values()]
        if not name.startswith("_") and inspect.Parameter.VAR_KEYWORD in kinds:
            if name in ("start", "serve"):  # what is mistyped, and the options of a server
                continue
            assert get_overloads(call), name
