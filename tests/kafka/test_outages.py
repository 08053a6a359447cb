"""The broker is killed in the middle of a batch, and runs again."""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.kafka.broker import Broker
from tests.kafka.counting import Counting
from trident import FixedBatchSpout, KafkaStateUpdater, TridentTopology
from trident.backends import kafka
from trident.spouts.kafka import KafkaSpout
from trident.spouts.kafka.coordinator import KafkaCoordinator
from trident.testing import fail_at, hold_at
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.process import wait_until

BOTH = pytest.mark.parametrize("made", [KafkaSpout.opaque, KafkaSpout.transactional])


@pytest.fixture
def kill_after_listing(own_server: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Says at which attempt the broker is killed: its partitions are known, and not read yet.

    Returns an event that is set when the broker is gone.
    """

    def kill_at(attempt: int) -> Event:
        killed = Event()
        listing = KafkaCoordinator.getPartitionsForBatch
        attempts = iter(range(1000))

        def list_and_kill(self: KafkaCoordinator) -> Any:
            found = listing(self)
            if next(attempts) == attempt:
                own_server.kill()
                killed.set()
            return found

        monkeypatch.setattr(KafkaCoordinator, "getPartitionsForBatch", list_and_kill)
        return killed

    return kill_at


def _said(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return any(text in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (KafkaSpout.opaque, "stream values goes on without partition {}-0: Kafka at"),
        (KafkaSpout.transactional, "batch 1 of values waits: stream 'values', partition {}-0"),
    ],
    ids=["opaque", "transactional"],
)
def test_an_opaque_batch_goes_on_without_a_killed_broker_and_a_transactional_one_waits(
    made: Any,
    told: str,
    own_server: KafkaServer,
    kill_after_listing: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker(own_server.url)
    topic = broker.topic()
    broker.produce(topic, ["a", "b"])
    counting = Counting(tmp_path)
    spout = made(broker.servers, topic, poll_timeout=0.5)
    killed = kill_after_listing(0)
    with caplog.at_level(logging.INFO, "trident"), counting.start(spout, patience=120) as run:
        assert killed.wait(60)
        wait_until(lambda: _said(caplog, told.format(topic)), 60)
        assert run.isActive
        own_server.start()
        broker.produce(topic, ["b"])
        wait_until(lambda: counting.asked(run) == {"a": 1, "b": 2}, 60)


@BOTH
def test_a_batch_whose_first_attempt_was_before_the_kill_is_counted_once(
    made: Any, own_server: KafkaServer, kill_after_listing: Any, tmp_path: Path
) -> None:
    broker = Broker(own_server.url)
    topic = broker.topic()
    broker.produce(topic, ["a", "b"])
    counting = Counting(tmp_path, transactional=made is KafkaSpout.transactional)
    spout = made(broker.servers, topic, poll_timeout=0.5)
    killed = kill_after_listing(1)
    with fail_at("after write", txid=1), counting.start(spout, patience=120) as run:
        assert killed.wait(60)
        own_server.start()
        broker.produce(topic, ["b"])
        wait_until(lambda: counting.asked(run) == {"a": 1, "b": 2}, 60)


@pytest.mark.parametrize("point", ["before begin", "before write", "before ready"])
def test_a_sink_whose_broker_is_killed_within_a_batch_has_each_record_once(
    point: str, own_server: KafkaServer, tmp_path: Path
) -> None:
    broker = Broker(own_server.url)
    topic = broker.topic()
    sink = kafka.sink(broker.servers, topic, prefix=topic, timeout=2)
    topology = TridentTopology()
    words = FixedBatchSpout("word string", 1, ["a"], ["b"], ["c"])
    topology.newStream("words", words).partitionPersist(
        sink, "word", KafkaStateUpdater("word"), name="words"
    )
    with (
        hold_at(point, txid=2) as hold,
        topology.start(checkpoint=tmp_path / "run", trigger="available", patience=120) as run,
    ):
        hold.wait_reached()
        own_server.kill()
        hold.release()
        own_server.start()
        assert run.awaitTermination(120)
    reader = sink.records()
    records, _ = reader.read()
    reader.close()
    assert [record.value for record in records] == [b"a", b"b", b"c"]
