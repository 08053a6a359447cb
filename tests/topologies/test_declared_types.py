"""A value of another type than its field's is refused where it is made, alike on both engines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from tests.topologies.capture import Captured
from tests.topologies.conftest import Engine, feed
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import OperationError
from trident.operations.interfaces import QueryFunction, StateUpdater, TridentCollector
from trident.spouts.feeder import FeederBatchSpout
from trident.states.state import StateFactory


class Echo(QueryFunction[Any, Any]):
    """Finds the input itself."""

    positional = True

    def batchRetrieve(self, state: Any, tuples: Sequence[Any]) -> Sequence[Any]:
        return tuples

    def execute(self, tuple: Any, result: Any, collector: TridentCollector) -> None:
        collector.emit(result)


class Pass(StateUpdater[Any]):
    """Emits its tuples."""

    def updateState(self, state: Any, tuples: Sequence[Any], collector: TridentCollector) -> None:
        for values in tuples:
            collector.emit(list(values))


@pytest.fixture(params=["driver", "executor"])
def state(request: pytest.FixtureRequest, engine: Engine) -> StateFactory:
    """A state that Spark reaches on the driver, and one that its tasks reach."""
    if request.param == "driver":
        return MemoryMapState.Factory()
    return Captured(engine.folder / "state")


def queried(topology: TridentTopology, stream: Stream, state: StateFactory) -> Stream:
    known = topology.newStaticState(state, name="known")
    return stream.stateQuery(known, "k, n", Echo(), "key string, found double").project("id")


def persisted(topology: TridentTopology, stream: Stream, state: StateFactory) -> Stream:
    kept = stream.partitionPersist(state, "k, n", Pass(), "key string, found double", name="kept")
    return kept.newValuesStream().project("key")


def unheard(topology: TridentTopology, stream: Stream, state: StateFactory) -> Stream:
    stream.partitionPersist(state, "k, n", Pass(), "key string, found double", name="kept")
    return stream.project("id")


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (queried, 'stateQuery("known", [k, n], Echo(), [key, found])'),
        (persisted, 'partitionPersist("kept", [k, n], Pass(), [key, found])'),
        (unheard, 'partitionPersist("kept", [k, n], Pass(), [key, found])'),
    ],
)
def test_what_a_state_gives_is_of_its_declared_types_whoever_takes_it(
    engine: Engine, state: StateFactory, step: Any, shown: str
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("id long, k string, n string")
    engine.capture(step(topology, topology.newStream("s", spout), state))
    with engine.start(topology) as run, pytest.raises(OperationError) as caught:
        feed(run, spout, [(1, "a", None), (2, "b", "x")])
    error = caught.value
    assert error.error == (
        f"trident.errors.EmittedValueError: {shown} emitted str 'x' for the field 'found', which "
        "is declared double: emit that type, or declare another"
    )
    assert (error.step, error.frames, error.row) == (shown, (), "key='b', found='x'")
    assert (error.txid, error.attempt, error.partition) == (1, 0, 0)
    assert f"{Path(__file__).name}:" in error.declared


@pytest.mark.parametrize("step", [queried, persisted])
def test_a_whole_number_from_a_state_becomes_the_float_that_is_declared(
    engine: Engine, state: StateFactory, step: Any
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("id long, k string, n long")
    step(topology, topology.newStream("s", spout), state)
    last = topology.plan().nodes[-1].parents[0]
    found = Stream(topology._builder, last).each("found", lambda x: [repr(x)], "text string")
    captured = engine.capture(found.project("text"))
    with engine.start(topology) as run:
        feed(run, spout, [(1, "a", 2)])
    assert captured.tuples == [("2.0",)]


@pytest.mark.parametrize(
    ("kind", "made"), [("double", "x"), ("int", 2**31), ("long", -(2**63) - 1)]
)
def test_a_value_that_no_later_step_reads_is_refused_too(
    engine: Engine, kind: str, made: Any
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    stream = topology.newStream("s", spout).each("n", lambda n: [n, made], f"made {kind}")
    engine.capture(stream.project("n"))
    with engine.start(topology) as run, pytest.raises(OperationError) as caught:
        feed(run, spout, [(1,)])
    assert f"for the field 'made', which is declared {kind}" in caught.value.error
    assert caught.value.row == f"made={made!r}"


def test_the_next_step_is_handed_the_float_that_is_declared(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    stream = topology.newStream("s", spout).each("n", lambda n: [n], "x double")
    captured = engine.capture(stream.each("x", lambda x: [repr(x)], "text string").project("text"))
    engine.play(topology, spout, [(1,)])
    assert captured.tuples == [("1.0",)]


class Colour(StrEnum):
    RED = "red"


class Name(str):
    """Text of a library's own class."""


class Raw(bytes):
    """Bytes likewise."""


def typed(engine: Engine, kind: str, value: Any) -> list[Any]:
    """What a step that makes the value hands on to the next, as that sees it."""
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    stream = topology.newStream("s", spout).each("n", lambda n: [value], f"made {kind}")
    shown = stream.each("made", lambda made: [f"{type(made).__name__} {made!s}"], "shown string")
    captured = engine.capture(shown.project("shown, made"))
    with engine.start(topology) as run:
        feed(run, spout, [(1,)])
    return list(captured.tuples[0])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", Colour.RED, "red"),
        ("string", Name("cat"), "cat"),
        ("varchar(9)", "cat", "cat"),
        ("char(3)", Name("cat"), "cat"),
        ("binary", Raw(b"cat"), b"cat"),
        ("date", date(2026, 1, 2), date(2026, 1, 2)),
        ("decimal(10,2)", 3, Decimal("3.00")),
        ("decimal(10,2)", Decimal("1.5"), Decimal("1.50")),
        ("decimal(10,2)", Decimal("-0"), Decimal("0.00")),
    ],
)
def test_the_next_step_is_handed_a_plain_value_of_the_type(
    engine: Engine, kind: str, value: Any, expected: Any
) -> None:
    shown, made = typed(engine, kind, value)
    assert shown == f"{type(expected).__name__} {expected!s}"
    assert (type(made), str(made)) == (type(expected), str(expected))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", "2026-01-02"),
        ("date", datetime(2026, 1, 2)),
        ("timestamp", date(2026, 1, 2)),
        ("timestamp_ntz", 0),
        ("decimal(10,2)", 1.5),
        ("decimal(10,2)", Decimal("1.555")),
        ("decimal(4,2)", Decimal(100)),
        ("decimal(4,2)", True),
        ("varchar(9)", 1),
        ("char(9)", b"cat"),
    ],
)
def test_a_value_that_is_none_of_the_type_is_refused_by_its_declared_name(
    engine: Engine, kind: str, value: Any
) -> None:
    with pytest.raises(OperationError) as caught:
        typed(engine, kind, value)
    assert f"for the field 'made', which is declared {kind}: emit that type" in caught.value.error
