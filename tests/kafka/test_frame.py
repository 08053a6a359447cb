"""Streams from Kafka by Spark's own source, on a real broker: told what spouts are told."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.kafka import without_source
from tests.kafka.broker import Broker
from tests.kafka.counting import Counting
from trident.batch.errors import BatchFailedError, OutageError
from trident.errors import FailedException, TridentError
from trident.spark import kafka_frame
from trident.spark.errors import SparkFailure
from trident.spouts.kafka import DeadLetterTopic, KafkaRecord, KafkaSpout
from trident.states.errors import UsageError
from trident.testing import fail_at, hold_at
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.process import wait_until


class Framed:
    """What Spark's source reads where a spout is told to; counted, or as it comes."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.counting = Counting(folder)

    def run(self, spout: Any, **options: Any) -> dict[str, int]:
        return self.counting.run(kafka_frame(self.spark, spout), session=self.spark, **options)

    def batches(self, spout: Any, **options: Any) -> list[list[tuple[Any, ...]]]:
        """The batches of all that there is."""
        found: list[list[tuple[Any, ...]]] = []
        frame = kafka_frame(self.spark, spout, **options)
        writer = frame.writeStream.trigger(availableNow=True)
        writer.foreachBatch(lambda batch, _: found.append(list(map(tuple, batch.collect()))))
        writer.start().awaitTermination()
        return found

    def rows(self, spout: Any, **options: Any) -> list[tuple[Any, ...]]:
        return [row for batch in self.batches(spout, **options) for row in batch]


@pytest.fixture
def framed(spark_with_kafka: Any, tmp_path: Path) -> Framed:
    return Framed(spark_with_kafka, tmp_path)


# Exact


@pytest.mark.parametrize(
    ("made", "kind"), [(KafkaSpout.opaque, None), (KafkaSpout.transactional, "transactional")]
)
def test_a_topic_is_counted_once_through_failures_and_a_restart(
    made: Any, kind: Any, framed: Framed, broker: Broker, tmp_path: Path
) -> None:
    framed.counting = Counting(tmp_path, transactional=kind is not None)
    topic = broker.topic(3)
    spout = made(broker.servers, topic, max_records=8)
    words = ["a", "b", "a", "c", "d", "a"]
    for partition, ending in enumerate(("plain", "commit", "abort")):
        broker.append(topic, words, ending, partition=partition)
    with fail_at("after write", txid=1), fail_at("before commit", txid=2):
        assert framed.run(spout, kind=kind) == Counter(words * 2)
    broker.produce(topic, ["e"])
    assert framed.run(spout, kind=kind) == Counter([*words * 2, "e"])


def test_a_batch_that_comes_back_after_a_restart_has_the_same_records(
    framed: Framed, broker: Broker
) -> None:
    topic = broker.topic()
    spout = KafkaSpout.transactional(broker.servers, topic)
    broker.produce(topic, ["a", "b"])
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        framed.run(spout, retries=0)
    broker.produce(topic, ["c"])
    with framed.counting.start(kafka_frame(framed.spark, spout), framed.spark) as run:
        run.processAllAvailable()
        assert framed.counting.asked(run) == {"a": 1, "b": 1, "c": 1}
        group = run.groups["values"].lastProgress
        assert group is not None
        assert (group.txid, group.tuples) == (2, 1)
        [figures] = run.figures()["groups"]
        assert figures["tuples"] == 3  # Spark tells them after each batch
        assert figures["lag"]["tuples"] == 0


def test_a_batch_whose_broker_is_killed_and_runs_again_is_counted_once(
    framed: Framed, own_server: KafkaServer
) -> None:
    broker = Broker(own_server.url)
    topic = broker.topic()
    broker.produce(topic, ["a", "b"])
    frame = kafka_frame(framed.spark, KafkaSpout.opaque(broker.servers, topic))
    with (
        hold_at("before write", txid=1) as hold,
        framed.counting.start(frame, framed.spark) as run,
    ):
        hold.wait_reached()
        own_server.kill()
        hold.release()
        own_server.start()
        broker.produce(topic, ["b"])
        wait_until(lambda: framed.counting.asked(run) == {"a": 1, "b": 2}, 90)


# What is read, and from where


@pytest.mark.parametrize(
    ("strategy", "read"),
    [
        ("UNCOMMITTED_EARLIEST", ["1", "2", "3"]),
        ("EARLIEST", ["1", "2", "3"]),
        ("LATEST", []),
        ("TIMESTAMP", ["2", "3"]),
    ],
)
def test_a_new_stream_begins_where_its_strategy_says(
    strategy: str, read: list[str], framed: Framed, broker: Broker
) -> None:
    topic = broker.topic(2)  # of which one has no record, and none so young
    broker.produce(topic, ["1", "2", "3"], timestamps=[1000, 2000, 3000])
    timestamp = 1500 if strategy == "TIMESTAMP" else None
    spout = KafkaSpout.opaque(
        broker.servers, topic, first_poll=strategy, timestamp=timestamp, fields="value"
    )
    assert framed.rows(spout) == [(value,) for value in read]


@pytest.mark.parametrize(
    ("strategy", "read"),
    [
        ("UNCOMMITTED_EARLIEST", ["0:3", "1:1", "1:2"]),
        ("UNCOMMITTED_LATEST", ["0:3"]),
        ("UNCOMMITTED_TIMESTAMP", ["0:3", "1:2"]),
        ("EARLIEST", ["0:1", "0:2", "0:3", "1:1", "1:2"]),
    ],
)
def test_an_uncommitted_strategy_takes_over_from_a_consumer_group_and_leaves_it_alone(
    strategy: str, read: list[str], framed: Framed, broker: Broker
) -> None:
    topic = broker.topic(2)
    broker.produce(topic, ["0:1", "0:2", "0:3"], timestamps=[1000, 2000, 3000])
    broker.produce(topic, ["1:1", "1:2"], partition=1, timestamps=[1000, 2000])
    group = {"group.id": f"group-{topic}"}
    consumer = Consumer({**broker.settings, **group, "enable.auto.commit": False})
    at = [TopicPartition(topic, 0, 2)]
    consumer.commit(offsets=at, asynchronous=False)
    timestamp = 1500 if strategy.endswith("TIMESTAMP") else None
    spout = KafkaSpout.opaque(
        broker.servers,
        topic,
        first_poll=strategy,
        timestamp=timestamp,
        fields="value",
        settings=group,
    )
    assert sorted(framed.rows(spout)) == [(value,) for value in read]
    assert [each.offset for each in consumer.committed(at, 30)] == [2]
    consumer.close()


def test_a_restart_goes_on_where_the_checkpoint_is_whatever_the_strategy(
    framed: Framed, broker: Broker
) -> None:
    topic = broker.topic()
    spout = KafkaSpout.opaque(broker.servers, topic, first_poll="LATEST")
    broker.produce(topic, ["before"])
    assert framed.run(spout) == {}
    broker.produce(topic, ["between two runs"])
    assert framed.run(spout) == {"between two runs": 1}
    earliest = KafkaSpout.opaque(broker.servers, topic, first_poll="EARLIEST")
    assert framed.run(earliest) == {"between two runs": 1}


def test_partitions_and_topics_that_appear_are_read_from_their_first_record(
    framed: Framed, broker: Broker
) -> None:
    name = broker.topic()
    pattern = re.compile(rf"{name.upper()}.*", re.IGNORECASE)
    spout = KafkaSpout.opaque(broker.servers, pattern, first_poll="LATEST")
    broker.produce(name, ["before"])
    with framed.counting.start(kafka_frame(framed.spark, spout), framed.spark) as run:
        run.processAllAvailable()
        broker.add_partitions(name, 2)
        broker.produce(name, ["added"], partition=1)
        broker.produce(broker.topic(name=f"{name}-later"), ["later"])
        broker.produce(broker.topic(name=f"x{name}"), ["whose name does not match as a whole"])
        wait_until(lambda: len(framed.counting.asked(run)) == 2, 60)
        assert framed.counting.asked(run) == {"added": 1, "later": 1}


def test_topics_of_kafkas_own_match_no_pattern(framed: Framed, broker: Broker) -> None:
    name = broker.topic()
    own = broker.topic(name=f"__{name}")
    for topic in (name, own):
        broker.produce(topic, ["a"])
    spout = KafkaSpout.opaque(broker.servers, re.compile(f"(__)?{name}"), fields="topic")
    assert framed.rows(spout) == [(name,)]


def test_a_batch_has_at_most_max_records_of_all_partitions_together(
    framed: Framed, broker: Broker
) -> None:
    topic = broker.topic(2)
    for partition in range(2):
        broker.produce(topic, list("abcd"), partition=partition)
    spout = KafkaSpout.opaque(broker.servers, topic, max_records=4, fields="value")
    assert [len(batch) for batch in framed.batches(spout)] == [4, 4]


def test_a_topic_that_is_not_there_stops_the_run(framed: Framed, broker: Broker) -> None:
    with pytest.raises(SparkFailure, match="UnknownTopicOrPartition"):
        framed.run(KafkaSpout.opaque(broker.servers, "nowhere"))


# Transactions


def test_an_open_transaction_is_read_when_it_is_committed(framed: Framed, broker: Broker) -> None:
    topic = broker.topic()
    spout = KafkaSpout.opaque(broker.servers, topic)
    broker.produce(topic, ["before"])
    producer = broker.transaction()
    producer.produce(topic, "within")
    producer.flush()
    broker.produce(topic, ["behind"])
    with framed.counting.start(kafka_frame(framed.spark, spout), framed.spark) as run:
        run.processAllAvailable()
        assert framed.counting.asked(run) == {"before": 1}
        assert run.figures()["groups"][0]["lag"]["tuples"] == 0, "the others can't be read yet"
    producer.commit_transaction()
    assert framed.run(spout) == {"before": 1, "within": 1, "behind": 1}


def test_batches_that_hold_nothing_but_markers_end(framed: Framed, broker: Broker) -> None:
    topic = broker.topic()
    for value, ending in (("a", "commit"), ("lost", "abort"), ("b", "commit"), ("lost", "abort")):
        broker.append(topic, [value] * 3, ending)
    spout = KafkaSpout.opaque(broker.servers, topic, max_records=1)
    assert framed.run(spout) == {"a": 3, "b": 3}


@pytest.mark.parametrize("of_spout", [True, False])
def test_uncommitted_records_are_read_where_the_settings_ask_for_them(
    of_spout: bool, framed: Framed, broker: Broker
) -> None:
    topic = broker.topic()
    producer = broker.transaction()
    producer.produce(topic, "within")
    producer.flush()
    asked = {"isolation.level": "read_uncommitted"}
    secret = {"sasl.password": "x"}  # which has another name there
    spout = KafkaSpout.opaque(
        broker.servers, topic, fields="value", settings=asked if of_spout else secret
    )
    given = {} if of_spout else {"settings": asked}
    assert framed.rows(spout, **given) == [("within",)]
    producer.abort_transaction()


# Retention


@pytest.mark.parametrize("made", [KafkaSpout.opaque, KafkaSpout.transactional])
def test_where_retention_took_what_was_not_read_a_stream_stops_or_goes_on_as_told(
    made: Any, framed: Framed, broker: Broker
) -> None:
    topic = broker.topic()
    broker.produce(topic, ["a"] * 3)
    framed.run(made(broker.servers, topic))
    broker.produce(topic, ["lost"] * 4 + ["b"])
    broker.delete_records(topic, 7)
    if made is KafkaSpout.transactional:
        with pytest.raises(SparkFailure, match="KAFKA_DATA_LOSS") as failed:
            framed.run(made(broker.servers, topic))
        assert f"records in offset [3, 8) for topic partition {topic}-0" in str(failed.value)
    going_on = made(broker.servers, topic, fail_on_data_loss=False)
    assert framed.run(going_on) == {"a": 3, "b": 1}


# Records as tuples


def test_columns_are_what_a_spout_emits(framed: Framed, broker: Broker) -> None:
    topic = broker.topic(2)
    broker.produce(topic, ["v", None], keys=["k", None], partition=1, timestamps=[1234, 5])
    spout = KafkaSpout.opaque(
        broker.servers, topic, fields="topic, partition, offset, key, value, timestamp"
    )
    frame = kafka_frame(framed.spark, spout)
    assert [f"{name} {kind}" for name, kind in frame.dtypes] == [
        *("topic string", "partition bigint", "offset bigint"),
        *("key string", "value string", "timestamp bigint"),
    ]
    assert framed.rows(spout) == [
        (topic, 1, 0, "k", "v", 1234),
        (topic, 1, 1, None, None, 5),
    ]


NUMBERS = [0, 1, -1, -(2**63), 2**63 - 1]


def test_keys_and_values_are_decoded_as_told(framed: Framed, broker: Broker) -> None:
    topic = broker.topic()
    keys = [number.to_bytes(8, "big", signed=True) for number in NUMBERS]
    broker.produce(topic, ["\u00e9"] * len(keys), keys=keys)
    by_spark = KafkaSpout.opaque(
        broker.servers, topic, fields="key, value", key="long", value="bytes"
    )
    assert framed.rows(by_spark) == [(number, "\u00e9".encode()) for number in NUMBERS]
    in_python = KafkaSpout.opaque(
        broker.servers, topic, fields="value, key long", key=len, value="string"
    )
    assert framed.rows(in_python) == [("\u00e9", 8)] * len(NUMBERS)


def _words(record: KafkaRecord) -> list[Any] | None:
    if record.value == "none":
        return None
    return [record.value["n"], dict(record.headers), record.timestamp]


def test_a_translator_makes_tuples_or_none(framed: Framed, broker: Broker) -> None:
    topic = broker.topic()
    producer = broker.transaction()
    for value in ('{"n": 1}', '"none"'):
        producer.produce(topic, value, headers={"h": b"x"}, timestamp=1234)
    producer.produce(topic, '{"n": 2}', timestamp=5)
    producer.commit_transaction()
    spout = KafkaSpout.opaque(
        broker.servers,
        topic,
        translator=_words,
        fields="n long, headers map<string,binary>, timestamp long",
        value="json",
    )
    assert framed.rows(spout) == [(1, {"h": b"x"}, 1234), (2, {}, 5)]


# Records that do not decode

BAD = ["a", b"\xff", "b"]


def _latin(data: bytes) -> str:
    return data.decode("latin-1")


def _picky(record: KafkaRecord) -> list[str]:
    return [record.value]


@pytest.mark.parametrize("translator", [None, _picky])
def test_a_record_that_does_not_decode_stops_the_run_and_is_named(
    translator: Any, framed: Framed, broker: Broker
) -> None:
    topic = broker.topic()
    broker.produce(topic, BAD)
    given = {"fields": "value string", "translator": translator}
    named = rf"topic '{topic}', partition 0, offset 1: "
    with pytest.raises(TridentError, match=named):
        framed.run(KafkaSpout.opaque(broker.servers, topic, **given))
    corrected = KafkaSpout.opaque(broker.servers, topic, fields="value string", value=_latin)
    assert framed.run(corrected) == {"a": 1, "b": 1, "ÿ": 1}


@pytest.mark.parametrize("translator", [None, _picky])
def test_a_record_that_does_not_decode_is_passed_over_as_told(
    translator: Any, framed: Framed, broker: Broker
) -> None:
    topic = broker.topic()
    broker.produce(topic, BAD)
    broker.produce(topic, ["long"], keys=["8 bytes!"])
    spout = KafkaSpout.opaque(
        broker.servers, topic, fields="value string", translator=translator, on_error="skip"
    )
    assert framed.rows(spout) == [("a",), ("b",), ("long",)]
    long_keys = KafkaSpout.opaque(
        broker.servers, topic, fields="key, value", key="long", on_error="skip"
    )
    whole = [(None, "a"), (None, "b"), (int.from_bytes(b"8 bytes!", "big"), "long")]
    assert framed.rows(long_keys) == whole


def test_a_record_that_does_not_decode_is_put_into_a_topic(framed: Framed, broker: Broker) -> None:
    topic, dead = broker.topic(), broker.topic()
    broker.produce(topic, BAD, keys=["k", "l", "m"])
    spout = KafkaSpout.opaque(broker.servers, topic, on_error=DeadLetterTopic(dead))
    assert framed.run(spout) == {"a": 1, "b": 1}
    [letter] = broker.read(dead)
    assert (letter.key(), letter.value()) == (b"l", b"\xff")
    headers = dict(letter.headers())
    assert headers["trident.topic"] == topic.encode()
    assert (headers["trident.partition"], headers["trident.offset"]) == (b"0", b"1")


def _refuse(record: KafkaRecord, error: Exception) -> None:
    raise FailedException(f"{record.offset}: {record.value!r}: {type(error).__name__}")


def test_a_record_that_does_not_decode_is_handed_to_a_function_that_may_fail_the_attempt(
    framed: Framed, broker: Broker
) -> None:
    topic = broker.topic()
    broker.produce(topic, BAD)
    spout = KafkaSpout.opaque(broker.servers, topic, on_error=_refuse)
    with pytest.raises(BatchFailedError, match=r"failed 1 time.*1: b'\\xff': UnicodeDecodeError"):
        framed.run(spout, retries=0)


def test_without_its_topic_for_dead_letters_a_stream_waits(framed: Framed, broker: Broker) -> None:
    topic = broker.topic()
    broker.produce(topic, BAD)
    dead = DeadLetterTopic("nowhere")
    spout = KafkaSpout.opaque(broker.servers, topic, on_error=dead, poll_timeout=1)
    with pytest.raises(OutageError, match="dead letters are not taken"):
        framed.run(spout, patience=0.01)


# The session, and what Spark's source can't do


def test_without_its_jars_the_package_of_this_spark_is_shown(
    spark_with_kafka: Any, tmp_path: Path
) -> None:
    program = [sys.executable, "-m", without_source.__name__]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=True)
    version = re.escape(spark_with_kafka.version)
    told = r"--packages org\.apache\.spark:spark-sql-kafka-0-10_2\.1\d:" + version
    assert re.search(told, done.stdout)


@pytest.mark.parametrize(
    ("given", "settings", "problem"),
    [
        ({"settings": {"sasl.username": "me"}}, None, "setting 'sasl.username'; there are: client"),
        ({}, {"enable.auto.commit": True}, "'enable.auto.commit' is its own"),
        ({}, {"kafka.client.id": "a"}, "Write it without 'kafka.'"),
        ({"value": "json"}, None, "none is known of the field 'value'"),
        ({"translator": _picky, "fields": "a, b long"}, None, "none is known of the field 'a'"),
        ({"topics": re.compile("(?P<name>a)")}, None, "Java, by which Spark matches topics"),
    ],
)
def test_what_sparks_source_can_not_do_is_an_error(
    given: dict[str, Any], settings: Any, problem: str, framed: Framed
) -> None:
    spout = KafkaSpout.opaque(**{"servers": "b:9092", "topics": "a", **given})
    with pytest.raises(UsageError, match=re.escape(problem)):
        kafka_frame(framed.spark, spout, settings=settings)


def test_settings_of_the_java_client_reach_it(framed: Framed, broker: Broker) -> None:
    spout = KafkaSpout.opaque(broker.servers, broker.topic(), settings={"sasl.password": "x"})
    with pytest.raises(Exception, match="security.protocol"):
        framed.rows(spout, settings={"security.protocol": "none such"})
    shared = {"security.protocol": "plaintext", "client.id": "mine"}
    assert framed.rows(KafkaSpout.opaque(broker.servers, broker.topic(), settings=shared)) == []
