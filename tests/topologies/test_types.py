"""Dates, moments, decimals, bytes and structs as keys and as values, alike on both engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from tests.spark.files import Files
from tests.topologies.conftest import Engine, feed
from trident import (
    Count,
    MapGet,
    PlainFunction,
    ReducerAggregator,
    TridentTopology,
)
from trident.backends import sqlite
from trident.backends.memory import MemoryMapState
from trident.errors import OperationError
from trident.spouts.feeder import FeederBatchSpout
from trident.states.maps.factory import MapStateFactory, OpaqueMap


class Point(NamedTuple):
    """A struct by the names of its fields."""

    y: float
    x: int


@dataclass(frozen=True)
class Case:
    """Values of a type, and what streams and states have for them.

    Parameters
    ----------
    kind : str
        The type.
    given : sequence
        What a function makes.
    found : sequence
        What later steps are handed for each.
    stored : sequence or None
        What the state's own list of keys has, where that differs.
    """

    kind: str
    given: Sequence[Any]
    found: Sequence[Any]
    stored: Sequence[Any] | None = None


BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 7, 1, 12, 0, 0, 5, UTC)
AUTUMN = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)  # half past two, which there is twice
SUMMER_END, WINTER_START = datetime(2026, 10, 25, 0, 30), datetime(2026, 10, 25, 1, 30)
DAY = date(2026, 1, 2)

CASES = {
    "dates": Case("date", [DAY, DAY, date.min, None], [DAY, DAY, date.min, None]),
    "moments": Case(
        "timestamp",
        [NOON, NOON.astimezone(BERLIN), NOON.astimezone(timezone(timedelta(hours=-9))), None],
        [NOON, NOON, NOON, None],
    ),
    "moments of an hour that comes twice": Case(
        "timestamp",
        [AUTUMN, AUTUMN.replace(fold=1)],
        [SUMMER_END.replace(tzinfo=UTC), WINTER_START.replace(tzinfo=UTC)],
    ),
    "moments without a zone": Case(
        "timestamp_ntz",
        [datetime(2026, 7, 1, 12), datetime(2026, 3, 29, 2, 30), datetime(2026, 7, 1, 12), None],
        [datetime(2026, 7, 1, 12), datetime(2026, 3, 29, 2, 30), datetime(2026, 7, 1, 12), None],
    ),
    "decimals": Case(
        "decimal(10,2)",
        [Decimal("1.5"), Decimal("1.50"), 2, Decimal("1E+2"), Decimal("-0"), 0, None],
        [
            *(Decimal("1.50"), Decimal("1.50"), Decimal("2.00"), Decimal("100.00")),
            *(Decimal("0.00"), Decimal("0.00"), None),
        ],
        [
            *(Decimal("1.5"), Decimal("1.5"), Decimal(2), Decimal(100), Decimal(0), Decimal(0)),
            None,
        ],
    ),
    "bytes": Case(
        "binary",
        [b"a\xff\0", bytearray(b"a\xff\0"), b"", None],
        [b"a\xff\0", b"a\xff\0", b"", None],
    ),
    "a UUID, which is text": Case(
        "string",
        [UUID(int=255), f"{UUID(int=255)}", None],
        [f"{UUID(int=255)}", f"{UUID(int=255)}", None],
    ),
    "doubles": Case(
        "double",
        [0.0, -0.0, nan, float("nan"), inf, -inf, 1, 5e-324, None],
        [0.0, 0.0, nan, nan, inf, -inf, 1.0, 5e-324, None],
    ),
    "floats, of 32 bits": Case(
        "float", [0.1, -0.0, nan, 16_777_217], [0.10000000149011612, 0.0, nan, 16_777_216.0]
    ),
    "booleans": Case("boolean", [True, False, None], [True, False, None]),
    "arrays": Case(
        "array<double>",
        [[1, None, -0.0], (1.0, None, 0.0), [], [nan], [None], None],
        [[1.0, None, 0.0], [1.0, None, 0.0], [], [nan], [None], None],
    ),
    "arrays of moments": Case(
        "array<timestamp>", [[NOON.astimezone(BERLIN)], [NOON, None]], [[NOON], [NOON, None]]
    ),
    "structs": Case(
        "struct<x:long,y:double>",
        [{"y": 2, "x": 1}, (1, 2.0), Point(2, 1), {"x": 1}, {"x": None, "y": nan}, None],
        [
            *[{"x": 1, "y": 2.0}] * 3,
            *({"x": 1, "y": None}, {"x": None, "y": nan}, None),
        ],
    ),
    "nested structs": Case(
        "struct<b:array<struct<t:timestamp_ntz,n:decimal(4,1)>>,a:binary>",
        [{"a": b"x", "b": [(datetime(2026, 7, 1), 7), None]}, ([], None)],
        [
            {"b": [{"t": datetime(2026, 7, 1), "n": Decimal("7.0")}, None], "a": b"x"},
            {"b": [], "a": None},
        ],
        [
            {"a": b"x", "b": [{"n": Decimal(7), "t": datetime(2026, 7, 1)}, None]},
            {"a": None, "b": []},
        ],
    ),
    "a struct that looks like a tag": Case(
        "struct<`$date`:string>",
        [{"$date": "2026-01-02"}, {"$date": None}],
        [{"$date": "2026-01-02"}, {"$date": None}],
    ),
}


class Pick(PlainFunction):
    """The value at a position."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def expand(self, n: int) -> Sequence[Any]:
        return [(self.values[n],)]


class Number(ReducerAggregator[int]):
    """How many tuples there are, counted in Python."""

    output_types = (int,)

    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + 1


@pytest.fixture(autouse=True)
def many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Spark take a few rows for many, so that keys move between partitions."""
    monkeypatch.setattr("trident.spark.group_engine.SMALL", 1)


@pytest.fixture(params=["Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, engine: Engine) -> Iterator[str]:
    """A time zone that Spark's session is in."""
    if engine.spark is None:
        yield "none"
        return
    name = "spark.sql.session.timeZone"
    before = engine.spark.conf.get(name)
    engine.spark.conf.set(name, request.param)
    yield request.param
    engine.spark.conf.set(name, before)


def counted(values: Sequence[Any]) -> list[tuple[str, int]]:
    looks = list(map(repr, values))
    return sorted((look, looks.count(look)) for look in set(looks))


def shown(rows: Sequence[Sequence[Any]]) -> list[tuple[str, int]]:
    return sorted((repr(key), count) for key, count in rows)


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_equal_keys_are_one_group_and_one_entry(engine: Engine, case: Case) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    keys = topology.newStream("s", spout).each("n", Pick(case.given), f"k {case.kind}").project("k")
    natively = engine.capture(keys.groupBy("k").aggregate(Count(), "c"), "natively")
    in_python = engine.capture(keys.groupBy("k").aggregate("k", Number(), "c"), "in-python")
    factories = on_driver, in_tasks = MemoryMapState.Factory(), files(engine)
    counts = keys.groupBy("k").persistentAggregate(on_driver, Count(), "c", name="on-driver")
    numbers = keys.groupBy("k").persistentAggregate(in_tasks, "k", Number(), "c", name="in-tasks")
    fresh = [
        engine.capture(counts.newValuesStream(), "counts"),
        engine.capture(numbers.parallelismHint(3).newValuesStream(), "numbers"),
    ]
    before = keys.stateQuery(counts, "k", MapGet(), "b").stateQuery(numbers, "k", MapGet(), "also")
    asked = engine.capture(before.project("k, b, also"), "asked")
    rows = [(n,) for n in range(len(case.given))]
    engine.play(topology, spout, rows, rows)
    expected = counted(case.found)
    for found in (natively, in_python):
        assert list(map(shown, found.batches)) == [expected] * 2
    for found in fresh:
        twice = [(look, 2 * count) for look, count in expected]
        assert list(map(shown, found.batches)) == [expected, twice]
    number = dict(expected)
    # What is no key keeps its sign.
    unsigned = [(repr(key).replace("-0.0", "0.0"), *counts) for key, *counts in asked.batches[1]]
    assert sorted(unsigned) == sorted(
        (repr(key), number[repr(key)], number[repr(key)]) for key in case.found
    )
    queried = case.given if case.kind == "string" else case.found
    for factory in factories:
        state = factory.makeState()
        found = state.multiGet([(key,) for key in queried])
        assert found == [2 * number[repr(key)] for key in case.found]
        state.close()
    state = on_driver.makeState()
    listed = [(key, count // 2) for key, count in state.getTuples()]
    assert shown(listed) == counted(case.found if case.stored is None else case.stored)


def files(engine: Engine) -> MapStateFactory:
    """A state that tasks update."""
    folder = engine.folder / "in-tasks"
    folder.mkdir()
    return OpaqueMap.factory(Files(str(folder)), name="in-tasks")


class Gathered(ReducerAggregator[Any]):
    """Makes a value that no JSON has."""

    def init(self) -> Any:
        return set()

    def reduce(self, curr: Any, tuple: Any) -> Any:
        return {*curr, tuple[0]}


@pytest.mark.parametrize("store", ["sqlite", "in tasks"])
def test_a_value_that_can_not_be_stored_is_named_with_its_state_step_and_key(
    engine: Engine, store: str
) -> None:
    factory = files(engine) if store == "in tasks" else sqlite.opaque(engine.folder / "counts.db")
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    words = topology.newStream("s", spout).groupBy("word")
    words.persistentAggregate(factory, "word", Gathered(), "words", name="gathered")
    with engine.start(topology) as run, pytest.raises(OperationError) as caught:
        feed(run, spout, [("a",)])
    error = caught.value
    assert "a value of key ('a',) can't be stored: found a set. JSON keeps None," in str(error)
    assert '"gathered"' in error.step
    assert "test_types.py" in error.declared
    assert (error.txid, error.attempt) == (1, 0)


@pytest.mark.parametrize("hint", [1, 2])
def test_a_key_that_can_not_be_stored_is_named_with_its_step(tmp_path: Path, hint: int) -> None:
    """Locally: on Spark the type of a key is known before anything runs."""
    engine = Engine(None, tmp_path)
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    words = topology.newStream("s", spout).each("word", lambda word: [{word}], "k")
    engine.capture(words.groupBy("k").aggregate("word", Number(), "c").parallelismHint(hint))
    with engine.start(topology) as run, pytest.raises(OperationError) as caught:
        feed(run, spout, [("a",)])
    assert "a key can't be stored: found a builtins.set, in ({'a'},)" in str(caught.value)
    assert caught.value.step == "groupBy(k).aggregate(word, Number(), c)"
    assert (caught.value.txid, caught.value.attempt) == (1, 0)


@pytest.mark.parametrize("name", ["doubles", "moments", "decimals", "structs", "bytes"])
def test_equal_keys_are_joined(engine: Engine, name: str) -> None:
    case = CASES[name]
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    numbers = topology.newStream("s", spout)
    left = numbers.each("n", Pick(case.given), f"k {case.kind}")
    right = numbers.each("n", Pick(case.given), f"other {case.kind}").project("other")
    pairs = topology.join(left, "k", right, "other", "k, n")
    captured = engine.capture(pairs)
    engine.play(topology, spout, [(n,) for n in range(len(case.given))])
    looks = [repr(key) for key in case.found if key is not None]
    joined = [repr(key) for key, _ in captured.tuples if key is not None]
    found = [look.replace("-0.0", "0.0") for look in joined]  # a joined field keeps its sign
    assert sorted(found) == sorted(look for look in looks for _ in range(looks.count(look)))
