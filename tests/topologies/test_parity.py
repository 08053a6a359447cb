"""Any topology comes to what it says, on both engines: results, new values and states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import none, sampled_from

from tests.plan.node_classes import names, node_classes
from tests.topologies.capture import captured_in
from tests.topologies.conftest import Engine, feed
from tests.topologies.dealt import DEALS, Deal, Prepared, dealt
from tests.topologies.generated import SOURCE, Row, Rows, Step, World, number, topologies
from trident import Count, Split
from trident.api.topology import TridentTopology
from trident.plan.nodes import DeadLettersNode, NativeNode, Node, StaticStreamNode
from trident.plan.overlap import one_at_a_time
from trident.spouts.feeder import FeederBatchSpout

SPARK_SECONDS = 20.0
PENDING = sampled_from([1, 4])
"""How many batches may be emitted and not committed."""
_SETTINGS = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
_SEEN: set[type[Node]] = set()
_OVERLAPPED: set[bool] = set()


def bag(rows: Sequence[Row]) -> list[str]:
    """Tuples in an order of their own, told apart by type."""
    return sorted(map(repr, rows))


def _has_watermark(streams: Sequence[Sequence[Step]]) -> bool:
    """Whether a step goes by the latest time of each partition, of which the model knows nothing;
    see test_watermarks.py."""
    steps = [step for chain in streams for step in chain]
    return any(step.text.startswith("window(") and ", by " in step.text for step in steps)


def play(
    spark: Any,
    streams: Sequence[Sequence[Step]],
    batches: Sequence[Rows],
    deal: Deal | None,
    pending: int,
) -> None:
    """Run chains of steps as one topology, and compare it with the model.

    Its batches are fed one after the other, or are there before and may overlap, or are dealt to
    the partitions of a spout.
    """
    with TemporaryDirectory() as name:
        engine = Engine(spark, Path(name))
        world = World(TridentTopology(), Path(name))
        declared = ", ".join(f"{field} {kind}" for field, kind in SOURCE)
        feeder = FeederBatchSpout(declared)
        fields = feeder.getOutputFields()
        spout: Any = feeder if pending == 1 else Prepared(fields, batches)
        if deal is not None and not _has_watermark(streams):
            spout = dealt(deal, Path(name), fields, batches)
        source = world.topology.newStream("source", spout)
        asked = world.topology.newDRPCStream("count").each("args", Split(), "word")
        asked.groupBy("word").aggregate(Count(), "n")
        captured = []
        for number, steps in enumerate(streams):
            stream = source
            for step in steps:
                stream = step.build(world, stream)
            assert stream.getOutputFields().names == _fields_after(steps)
            hosted: Any = "executor" if pending == 1 else "driver"
            captured.append(captured_in(engine.folder / f"captured-{number}", stream, hosted))
        plan = world.topology.plan()
        _SEEN.update(type(node) for node in plan.nodes)
        _OVERLAPPED.add(pending > 1 and not any(map(one_at_a_time, plan.groups)))
        with engine.start(world.topology, max_pending=pending) as run:
            if spout is feeder:
                feed(run, feeder, *batches)
            else:
                run.processAllAvailable()
            answer = run.drpc.execute("count", "a b a")
        assert sorted(eval(answer)) == [["a", 2], ["b", 1]]
        for steps, found in zip(streams, captured, strict=True):
            expected = []
            for emitted in batches:
                rows = [source_row(row) for row in emitted]
                for step in steps:
                    rows = step.expect(world, rows)
                expected.append(bag(rows))
            assert [bag(rows) for rows in found.batches] == [rows for rows in expected if rows]
        for state, factory in world.states.items():
            _compare(factory.makeState(), world.model[state])


def source_row(row: Row) -> Row:
    """A tuple as it leaves the source: a whole number is a double where that is declared."""
    return tuple(number(kind, value) for (_, kind), value in zip(SOURCE, row, strict=True))


def _fields_after(steps: Sequence[Step]) -> tuple[str, ...]:
    return tuple(name for name, _ in (steps[-1].schema if steps else SOURCE))


def _compare(state: Any, model: dict[Row, Any]) -> None:
    found = state.multiGet(list(model))
    assert dict(zip(map(repr, model), found, strict=True)) == {
        repr(key): value for key, value in model.items()
    }
    state.close()


def assert_every_node_was_there() -> None:
    of_spark = {NativeNode, StaticStreamNode}  # no other engine runs these
    missing = node_classes() - _SEEN - of_spark - {DeadLettersNode}  # which a start adds
    assert not missing, f"tests/topologies/generated.py: no topology has {names(missing)}"


@pytest.mark.slow
def test_the_local_engine_does_what_the_model_does() -> None:
    _SEEN.clear()

    @settings(_SETTINGS, max_examples=200)
    @given(topologies(streams=2), none() | DEALS, PENDING)
    def check(drawn: tuple[list[list[Step]], list[Rows]], deal: Deal | None, pending: int) -> None:
        play(None, *drawn, deal, pending)

    check()
    assert_every_node_was_there()
    assert len(_OVERLAPPED) == 2  # batches that overlap, and others


@pytest.fixture
def few_rows(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have Spark take a few rows for many: for several partitions, and record batches in each."""
    monkeypatch.setattr("trident.spark.group_engine.SMALL", 3)
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "2")
    yield
    spark.conf.set(name, before)


@pytest.mark.spark
@pytest.mark.usefixtures("few_rows", "compiled")
def test_spark_does_what_the_model_does(spark: Any) -> None:
    """As many topologies as it comes to in some time."""
    _SEEN.clear()
    until = monotonic() + SPARK_SECONDS

    @settings(_SETTINGS, max_examples=500, phases=[Phase.generate])  # no time to shrink
    @given(topologies(streams=3), none() | DEALS, PENDING)
    def check(drawn: tuple[list[list[Step]], list[Rows]], deal: Deal | None, pending: int) -> None:
        nonlocal until
        if monotonic() < until:
            try:
                play(spark, *drawn, deal, pending)
            except BaseException:
                until = inf  # what has failed is run once more, to be shown
                raise

    check()
    assert _SEEN  # which nodes a slow machine comes to in that time is left open
