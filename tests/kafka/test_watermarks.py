"""Windows by the time of records wait for the partition of a topic that is slowest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kafka.broker import Broker
from tests.topologies.conftest import Engine
from trident import Count, Duration, MemoryMapState, TridentTopology, TumblingDurationWindow
from trident.spouts.kafka import KafkaSpout

BOTH = pytest.mark.parametrize("made", [KafkaSpout.opaque, KafkaSpout.transactional])


@BOTH
@pytest.mark.parametrize("session", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_events_in_order_are_all_counted_in_two_partitions(
    made: Any, session: str, broker: Broker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = Engine(request.getfixturevalue("spark") if session == "spark" else None, tmp_path)
    topic = broker.topic(2)
    broker.produce(topic, map(str, range(500)))
    broker.produce(topic, map(str, range(500, 1000)), partition=1)
    topology = TridentTopology()
    spout = made(broker.servers, topic, max_records=120, fields="value")
    times = topology.newStream("clicks", spout).map(lambda value: int(value), "t long")
    window = TumblingDurationWindow.of(Duration.of(10)).withTimestampField("t")
    windows = times.window(window, MemoryMapState.Factory(), Count(), "n")
    counted = engine.capture(windows.project("n"))
    with engine.start(topology) as run:
        run.processAllAvailable()
        assert sum(n for (n,) in counted.tuples) == 490  # partition 0 is at 499
        broker.produce(topic, ["1000"])
        while sum(n for (n,) in counted.tuples) < 990:
            run.processAllAvailable()
        assert sum(batch.late for batch in run.groups["clicks"].recentProgress) == 0
