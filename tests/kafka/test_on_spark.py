"""Kafka on Spark: streams and sinks are what they are on the local engine."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.broker import Broker
from tests.kafka.counting import Counting
from trident import FixedBatchSpout, KafkaStateUpdater, TridentTopology
from trident.backends import kafka
from trident.spouts.kafka import KafkaSpout
from trident.testing import fail_at

BOTH = pytest.mark.parametrize("made", [KafkaSpout.opaque, KafkaSpout.transactional])


@BOTH
def test_a_topic_is_counted_once_through_failures_and_a_restart(
    made: Any, spark: Any, broker: Broker, tmp_path: Path
) -> None:
    counting = Counting(tmp_path, transactional=made is KafkaSpout.transactional)
    topic = broker.topic(3)
    spout = made(broker.servers, topic, max_records=4)
    words = ["a", "b", "a", "c", "d", "a"]
    for partition in range(3):
        broker.produce(topic, words, partition=partition)
    with fail_at("after write", txid=1):
        assert counting.run(spout, session=spark) == Counter(words * 3)
    producer = broker.transaction()
    producer.produce(topic, "b", partition=1)
    producer.commit_transaction()
    assert counting.run(spout, session=spark) == Counter([*words * 3, "b"])
    broker.produce(topic, ["e"])  # and one engine goes on where the other was
    assert counting.run(spout) == Counter([*words * 3, "b", "e"])


def test_what_a_stream_lost_is_told_on_the_driver(
    spark: Any, broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counting = Counting(tmp_path)
    topic = broker.topic()
    broker.produce(topic, ["a"])
    spout = KafkaSpout.opaque(broker.servers, topic)
    counting.run(spout, session=spark)
    broker.produce(topic, ["lost", "b"])
    broker.delete_records(topic, 2)
    with caplog.at_level(logging.WARNING, "trident"):
        assert counting.run(spout, session=spark) == {"a": 1, "b": 1}
    assert any("offsets 1 to 1 were deleted" in record.getMessage() for record in caplog.records)


def test_a_sink_has_each_record_once(spark: Any, broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    sink = kafka.sink(broker.servers, topic, prefix="words")
    topology = TridentTopology()
    words = FixedBatchSpout("word string", 2, ["a"], ["b"], ["c"])
    topology.newStream("words", words).partitionPersist(
        sink, "word", KafkaStateUpdater("word"), name="words"
    )
    started = topology.start(spark, checkpoint=tmp_path / "run", trigger="available")
    with fail_at("after write", txid=2), started as run:
        run.awaitTermination(120)
    reader = sink.records()
    records, _ = reader.read()
    reader.close()
    assert [record.value for record in records] == [b"a", b"b", b"c"]
    assert len(broker.read(topic)) == 4
