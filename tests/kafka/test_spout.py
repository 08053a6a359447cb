"""Streams from Kafka on the local engine, on a real broker."""

from __future__ import annotations

import logging
import os
import pickle
import re
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.broker import Broker
from tests.kafka.counting import Counting
from trident import Count, TridentTopology
from trident.backends.urls import state_from_url
from trident.batch.errors import BatchFailedError, OutageError
from trident.cli.main import main
from trident.errors import OperationError
from trident.figures import prometheus
from trident.log.file_log import FileLog
from trident.spouts.kafka import (
    DeadLetterTopic,
    FirstPollOffsetStrategy,
    KafkaRecord,
    KafkaSpout,
    coordinator,
)
from trident.states.errors import UsageError
from trident.testing import fail_at
from trident.testing.servers.process import wait_until

REBUILT = "REBUILT_TOPIC"
BOTH = pytest.mark.parametrize("made", [KafkaSpout.opaque, KafkaSpout.transactional])


@pytest.fixture
def counting(tmp_path: Path) -> Counting:
    return Counting(tmp_path)


def tuples_of(spout: Any) -> list[tuple[Any, ...]]:
    """What the stream's first batch holds."""
    from trident.spouts.collector import SpoutCollector
    from trident.states.values import Token

    collector = SpoutCollector("the spout", spout.getOutputFields())
    coordinator, emitter = spout.getCoordinator({}, None), spout.getEmitter({}, None)
    try:
        coordinator.follow({})
        partitions = emitter.getOrderedPartitions(coordinator.getPartitionsForBatch())
        emitter.refreshPartitions(partitions)
        emit = getattr(emitter, "emitPartitionBatchNew", emitter.emitPartitionBatch)
        for partition in partitions:
            emit(Token(1, 0), collector, partition, None)
    finally:
        emitter.close()
        coordinator.close()
    return list(collector.block().tuples(spout.getOutputFields().names))


# What is read, and from where


@BOTH
def test_every_partition_is_read_to_its_end(made: Any, broker: Broker, counting: Counting) -> None:
    topic = broker.topic(3)
    for partition in range(2):
        broker.produce(topic, ["a", "b", "a"], partition=partition)
    assert counting.run(made(broker.servers, topic, max_records=2)) == {"a": 4, "b": 2}


@BOTH
def test_a_restart_goes_on_behind_the_last_committed_batch(
    made: Any, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic(2)
    spout = made(broker.servers, topic, first_poll="EARLIEST")
    broker.produce(topic, ["a", "b"])
    assert counting.run(spout) == {"a": 1, "b": 1}
    assert counting.run(spout) == {"a": 1, "b": 1}
    broker.produce(topic, ["b"])
    broker.produce(topic, ["c"], partition=1)
    assert counting.run(spout) == {"a": 1, "b": 2, "c": 1}


@BOTH
@pytest.mark.parametrize("point", ["before begin", "after write", "before commit"])
def test_a_failed_batch_is_counted_once(
    made: Any, point: str, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic(2)
    broker.produce(topic, ["a", "b"])
    broker.produce(topic, ["c"], partition=1)
    with fail_at(point, txid=1):
        assert counting.run(made(broker.servers, topic)) == {"a": 1, "b": 1, "c": 1}


@BOTH
def test_a_partition_that_is_added_is_read_from_its_first_record_whatever_the_strategy(
    made: Any, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    spout = made(broker.servers, topic, first_poll="LATEST", partition_refresh=0)
    broker.produce(topic, ["before"])
    with counting.start(spout) as run:
        run.processAllAvailable()
        broker.add_partitions(topic, 2)
        broker.produce(topic, ["added"], partition=1)
        broker.produce(topic, ["after"])
        _until(lambda: len(counting.asked(run)) == 2)
        assert counting.asked(run) == {"added": 1, "after": 1}


@BOTH
def test_a_topic_that_appears_for_a_pattern_is_read_from_its_first_record(
    made: Any, broker: Broker, counting: Counting
) -> None:
    name = broker.topic()
    pattern = re.compile(rf"{name}.*")
    spout = made(broker.servers, pattern, first_poll="LATEST", partition_refresh=0)
    with counting.start(spout) as run:
        run.processAllAvailable()
        broker.produce(broker.topic(name=f"{name}-later"), ["a"])
        broker.produce(broker.topic(name=f"x{name}"), ["whose name does not match as a whole"])
        _until(lambda: counting.asked(run))
        assert counting.asked(run) == {"a": 1}


@BOTH
@pytest.mark.parametrize(
    ("strategy", "read"),
    [
        ("EARLIEST", ["1", "2", "3"]),
        ("UNCOMMITTED_EARLIEST", ["1", "2", "3"]),
        ("LATEST", []),
        ("UNCOMMITTED_LATEST", []),
        ("TIMESTAMP", ["2", "3"]),
        ("UNCOMMITTED_TIMESTAMP", ["2", "3"]),
    ],
)
def test_a_new_stream_begins_where_its_strategy_says(
    made: Any, strategy: str, read: list[str], broker: Broker
) -> None:
    topic = broker.topic()
    broker.produce(topic, ["1", "2", "3"], timestamps=[1000, 2000, 3000])
    timestamp = datetime.fromtimestamp(1.5, UTC) if "TIMESTAMP" in strategy else None
    spout = made(broker.servers, topic, first_poll=strategy, timestamp=timestamp, fields="value")
    assert tuples_of(spout) == [(value,) for value in read]


@pytest.mark.parametrize(
    ("since", "read"),
    [
        (None, []),
        ("earliest", ["1", "2", "3"]),
        ("1970-01-01T00:00:01.500+00:00", ["2", "3"]),
        ('{"TOPIC": {"0": 2}}', ["3"]),
        ('{"TOPIC": {"7": 2}}', ["1", "2", "3"]),
    ],
)
def test_a_rebuild_begins_where_it_is_told_whatever_the_strategy(
    since: str | None, read: list[str], broker: Broker
) -> None:
    topic = broker.topic()
    broker.produce(topic, ["1", "2", "3"], timestamps=[1000, 2000, 3000])
    spout = KafkaSpout.transactional(broker.servers, topic, first_poll="LATEST", fields="value")
    history = spout.from_history(since and since.replace("TOPIC", topic))
    assert tuples_of(history) == [(value,) for value in read]
    assert tuples_of(spout) == [], "the spout itself is as it was"


@pytest.mark.parametrize("since", ["latest", "2026-31-31", '{"a": 1}', '{"a": {"0": -1}}', "{}x"])
def test_a_rebuild_that_begins_nowhere_is_refused(since: str) -> None:
    with pytest.raises(UsageError, match="can't begin at"):
        KafkaSpout.opaque("one:9092", "lines").from_history(since)


def rebuilt() -> TridentTopology:
    """Counts the values of a topic from now on, as a rebuild does from an offset."""
    topology, (servers, topic, folder) = TridentTopology(), os.environ[REBUILT].split()
    spout = KafkaSpout.opaque(servers, topic, first_poll="LATEST", fields="value")
    values = topology.newStream("values", spout).groupBy("value")
    values.persistentAggregate(f"sqlite:{folder}/counts.db", Count(), "count")
    return topology


def test_the_command_builds_from_offsets_and_goes_on_behind_what_it_has_read(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic(2)
    for partition in 0, 1:
        broker.produce(topic, ["a", "b", "c"], partition=partition)
    monkeypatch.setenv(REBUILT, f"{broker.servers} {topic} {tmp_path}")
    here, new = f"{__name__}:rebuilt", str(tmp_path / "new")

    def run(checkpoint: str, *words: str) -> dict[str, int]:
        status = main(["run", here, "--trigger", "available", "--checkpoint", checkpoint, *words])
        assert status == 0
        state: Any = state_from_url(f"sqlite:{tmp_path}/counts.db?prefix=count").makeState()
        with closing(state):
            return dict(state.getTuples())

    assert run(f"{tmp_path}/old") == {}
    since = f'{{"{topic}": {{"0": 2}}}}'
    command = ["rebuild", here, "--state", "count", "--to", "count_2", "--from", since]
    assert main([*command, "--checkpoint", new]) == 0
    assert run(new) == {"a": 1, "b": 1, "c": 2}
    broker.produce(topic, ["c"], partition=0)
    assert run(new) == {"a": 1, "b": 1, "c": 3}


def test_behind_all_timestamps_is_the_end(broker: Broker) -> None:
    topic = broker.topic()
    broker.produce(topic, ["1"], timestamps=[1000])
    first_poll = FirstPollOffsetStrategy.TIMESTAMP
    spout = KafkaSpout.opaque(broker.servers, topic, first_poll=first_poll, timestamp=5000)
    assert tuples_of(spout) == []


@pytest.mark.parametrize(("strategy", "read"), [("UNCOMMITTED_EARLIEST", 1), ("EARLIEST", 3)])
def test_an_uncommitted_strategy_takes_over_from_a_consumer_group(
    strategy: str, read: int, broker: Broker
) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = broker.topic()
    broker.produce(topic, ["1", "2", "3"])
    group = {"group.id": f"group-{topic}"}
    consumer = Consumer({**broker.settings, **group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    spout = KafkaSpout.opaque(broker.servers, topic, first_poll=strategy, settings=group)
    assert len(tuples_of(spout)) == read


@BOTH
def test_latest_of_an_empty_first_batch_is_kept_by_its_commit(
    made: Any, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    spout = made(broker.servers, topic, first_poll="LATEST")
    broker.produce(topic, ["before"])
    assert counting.run(spout) == {}
    broker.produce(topic, ["between two runs"])
    assert counting.run(spout) == {"between two runs": 1}


# Records as tuples


def test_the_default_fields_are_those_of_storm_with_their_types(broker: Broker) -> None:
    topic = broker.topic(2)
    broker.produce(topic, ["v", None], keys=["k", None], partition=1)
    spout = KafkaSpout.opaque(broker.servers, topic)
    assert str(spout.getOutputFields()) == "topic, partition, offset, key, value"
    assert spout.getOutputFields().types["offset"] == "long"
    assert tuples_of(spout) == [(topic, 1, 0, "k", "v"), (topic, 1, 1, None, None)]


def test_values_are_decoded_as_told(broker: Broker) -> None:
    topic = broker.topic()
    broker.produce(topic, ['{"n": 1}'], keys=[(7).to_bytes(8, "big")], timestamps=[1234])
    spout = KafkaSpout.opaque(
        broker.servers, topic, fields="timestamp, value, key", key="long", value="json"
    )
    assert tuples_of(spout) == [(1234, {"n": 1}, 7)]
    assert tuples_of(
        KafkaSpout.opaque(broker.servers, topic, fields="key, value", key=len, value="bytes")
    ) == [(8, b'{"n": 1}')]


def _words(record: KafkaRecord) -> list[Any] | None:
    return [record.value, dict(record.headers)["h"]] if record.value != "none" else None


def test_a_translator_makes_tuples_or_none(broker: Broker) -> None:
    topic = broker.topic()
    producer = broker.transaction()
    for value in ("a", "none"):
        producer.produce(topic, value, headers={"h": b"x"})
    producer.commit_transaction()
    spout = KafkaSpout.opaque(broker.servers, topic, translator=_words, fields="word, header")
    _until(lambda: tuples_of(spout))  # a commit is seen by readers a little later
    assert tuples_of(spout) == [("a", b"x")]


# Offsets without records


@BOTH
def test_markers_and_aborted_records_are_passed_over(
    made: Any, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    spout = made(broker.servers, topic, max_records=2)
    for value, ending in (("a", "commit"), ("lost", "abort"), ("b", "commit"), ("lost", "abort")):
        producer = broker.transaction()
        for _ in range(3):
            producer.produce(topic, value)
        getattr(producer, f"{ending}_transaction")()
    assert counting.run(spout) == {"a": 3, "b": 3}
    assert counting.run(spout) == {"a": 3, "b": 3}


@BOTH
def test_an_open_transaction_is_read_when_it_is_committed(
    made: Any, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    spout = made(broker.servers, topic)
    broker.produce(topic, ["before"])
    producer = broker.transaction()
    producer.produce(topic, "within")
    producer.flush()
    broker.produce(topic, ["behind"])
    assert counting.run(spout) == {"before": 1}
    producer.commit_transaction()
    assert counting.run(spout) == {"before": 1, "within": 1, "behind": 1}


def test_uncommitted_records_are_read_where_the_settings_ask_for_them(broker: Broker) -> None:
    topic = broker.topic()
    producer = broker.transaction()
    producer.produce(topic, "within")
    producer.flush()
    settings = {"isolation.level": "read_uncommitted"}
    assert len(tuples_of(KafkaSpout.opaque(broker.servers, topic, settings=settings))) == 1
    producer.abort_transaction()


@BOTH
def test_the_gaps_of_a_compacted_topic_are_passed_over(
    made: Any, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic(
        cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01"
    )
    broker.produce(topic, ["first"], keys=["kept"])

    def cleaned() -> bool:
        # A segment is closed by what is appended to the next one.
        broker.produce(topic, ["again", "other"], keys=["k", "l"])
        offsets = [record.offset() for record in broker.read(topic)]
        return offsets[0] == 0 and len(offsets) < offsets[-1] + 1

    _until(cleaned, 60)
    before = len(broker.read(topic))
    counted = counting.run(made(broker.servers, topic, max_records=1))
    after = len(broker.read(topic))  # which compaction may have gone on with
    assert after <= sum(counted.values()) <= before
    assert counted["first"] == 1


# Replays


@BOTH
def test_a_batch_that_comes_back_after_a_restart_is_counted_once(
    made: Any, broker: Broker, tmp_path: Path
) -> None:
    transactional = made is KafkaSpout.transactional
    counting = Counting(tmp_path, transactional=transactional)
    topic = broker.topic(2)
    broker.produce(topic, ["a", "b"])
    producer = broker.transaction()
    producer.produce(topic, "a", partition=1)
    producer.commit_transaction()
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        counting.run(made(broker.servers, topic), retries=0)
    broker.produce(topic, ["a"])
    broker.produce(topic, ["c"], partition=1)
    assert counting.run(made(broker.servers, topic)) == {"a": 3, "b": 1, "c": 1}


def test_a_transactional_batch_is_emitted_again_to_its_last_offset_and_no_further(
    broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    for value in ("a", "b"):
        producer = broker.transaction()
        producer.produce(topic, value)
        producer.commit_transaction()
    spout = KafkaSpout.transactional(broker.servers, topic, fields="value")
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        counting.run(spout, retries=0)
    assert _planned(counting) == {f"{topic}-0": {"first": 0, "next": 4, "records": 2}}
    broker.produce(topic, ["c"])
    again = []

    def noted(data: bytes) -> str:
        again.append(data)
        return data.decode()

    spout = KafkaSpout.transactional(broker.servers, topic, fields="value string", value=noted)
    assert counting.run(spout) == {"a": 1, "b": 1, "c": 1}
    assert again == [b"a", b"b", b"c"]


def test_a_transactional_batch_does_not_wait_for_a_topic_it_has_nothing_of(
    broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    gone = broker.topic(name=f"{topic}-gone")
    spout = KafkaSpout.transactional(broker.servers, re.compile(f"{topic}.*"))
    for each in (topic, gone):
        broker.produce(each, ["a"])
    counting.run(spout)
    broker.produce(topic, ["b"])
    with fail_at("after write", txid=2, times=9), pytest.raises(BatchFailedError):
        counting.run(spout, retries=0)
    broker.delete(gone)
    _until(lambda: not broker.exists(gone))
    assert counting.run(spout) == {"a": 2, "b": 1}


def _planned(counting: Counting) -> Any:
    newest = FileLog(counting.folder / "checkpoint" / "values" / "log").newest()
    assert newest is not None
    assert newest.planned is not None
    planned = newest.planned["values"]
    return {
        name: {key: said[key] for key in ("first", "next", "records")}
        for name, said in planned.items()
    }


# What is gone


def test_an_opaque_stream_goes_on_behind_what_retention_took_and_says_what_was_lost(
    broker: Broker, counting: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    topic = broker.topic()
    spout = KafkaSpout.opaque(broker.servers, topic)
    broker.produce(topic, ["a"] * 3)
    counting.run(spout)
    broker.produce(topic, ["lost"] * 4 + ["b"])
    broker.delete_records(topic, 7)
    with caplog.at_level(logging.WARNING, "trident"):
        assert counting.run(spout) == {"a": 3, "b": 1}
    told = [record.getMessage() for record in caplog.records if "deleted" in record.getMessage()]
    assert told == [
        f"partition {topic}-0: offsets 3 to 6 were deleted before they were read; "
        "the stream goes on without"
    ]


def test_a_transactional_stream_stops_where_retention_took_what_was_not_read(
    broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    broker.produce(topic, ["a"] * 3)
    counting.run(KafkaSpout.transactional(broker.servers, topic))
    broker.produce(topic, ["lost"] * 4 + ["b"])
    broker.delete_records(topic, 7)
    problem = f"KafkaDataLossError: topic '{topic}', partition 0: offsets 3 to 6 were deleted"
    with pytest.raises(OperationError, match=problem):
        counting.run(KafkaSpout.transactional(broker.servers, topic))
    accepting = KafkaSpout.transactional(broker.servers, topic, fail_on_data_loss=False)
    assert counting.run(accepting) == {"a": 3, "b": 1}


@pytest.mark.parametrize("left", [0, 1])
def test_a_transactional_batch_that_retention_took_is_an_error_when_it_is_emitted_again(
    left: int, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    broker.produce(topic, ["a", "b", "c"])
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        counting.run(KafkaSpout.transactional(broker.servers, topic), retries=0)
    broker.produce(topic, ["d"])
    broker.delete_records(topic, 3 - left)
    problem = r"of the 3 records from offset 0 to 2, which are to be emitted again"
    with pytest.raises(OperationError, match=problem):
        counting.run(KafkaSpout.transactional(broker.servers, topic))


def test_a_transactional_batch_of_which_compaction_took_some_is_an_error(
    broker: Broker, counting: Counting
) -> None:
    topic = broker.topic(
        cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01"
    )
    broker.produce(topic, ["a", "b"], keys=["k", "l"])
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        counting.run(KafkaSpout.transactional(broker.servers, topic), retries=0)

    def cleaned() -> bool:
        broker.produce(topic, ["c"], keys=["k"])
        return broker.read(topic)[0].offset() == 1

    _until(cleaned, 60)
    with pytest.raises(OperationError, match="only 1 are left"):
        counting.run(KafkaSpout.transactional(broker.servers, topic))


@pytest.mark.parametrize("again", [1, 5])
def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one(
    again: int, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    broker.produce(topic, ["a"] * 3)
    counting.run(KafkaSpout.opaque(broker.servers, topic))
    broker.delete(topic)
    _until(lambda: not broker.exists(topic))
    broker.topic(name=topic)
    broker.produce(topic, ["b"] * again)
    careful = KafkaSpout.opaque(broker.servers, topic, fail_on_data_loss=True)
    with pytest.raises(OperationError, match="the topic was deleted and made anew, when it was"):
        counting.run(careful)
    assert counting.run(KafkaSpout.opaque(broker.servers, topic)) == {"a": 3, "b": again}


@BOTH
def test_a_topic_that_is_not_there_is_waited_for(
    made: Any, broker: Broker, counting: Counting
) -> None:
    with pytest.raises(OutageError, match="there is no topic 'nowhere'. Create it"):
        counting.run(made(broker.servers, "nowhere"), patience=0.01)


# Records that do not decode

BAD = ["a", b"\xff", "b"]


@BOTH
def test_a_record_that_does_not_decode_stops_the_run_and_is_named(
    made: Any, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    broker.produce(topic, BAD)
    named = rf"(?s)KafkaRecordError.*topic '{topic}', partition 0, offset 1: UnicodeDecodeError"
    with pytest.raises(OperationError, match=named):
        counting.run(made(broker.servers, topic, fields="value"))
    corrected = made(broker.servers, topic, fields="value string", value=_latin)
    assert counting.run(corrected) == {"a": 1, "b": 1, "ÿ": 1}


def _latin(data: bytes) -> str:
    return data.decode("latin-1")


def test_a_record_that_does_not_decode_is_passed_over_as_told_and_counted_in_the_log(
    broker: Broker, counting: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    topic = broker.topic()
    broker.produce(topic, BAD)
    with caplog.at_level(logging.WARNING, "trident"):
        assert counting.run(KafkaSpout.opaque(broker.servers, topic, on_error="skip")) == {
            "a": 1,
            "b": 1,
        }
    told = f"partition {topic}-0, offsets 0 to 2: 1 records did not decode"
    assert any(told in record.getMessage() for record in caplog.records)


def test_a_record_that_does_not_decode_is_handed_to_a_function(
    broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    broker.produce(topic, BAD)
    taken = []
    spout = KafkaSpout.opaque(
        broker.servers, topic, on_error=lambda record, error: taken.append((record, error))
    )
    assert counting.run(spout) == {"a": 1, "b": 1}
    [(record, error)] = taken
    assert (record.offset, record.value) == (1, b"\xff")
    assert isinstance(error, UnicodeDecodeError)


def test_a_record_that_does_not_decode_is_put_into_a_topic(
    broker: Broker, counting: Counting
) -> None:
    topic, dead = broker.topic(), broker.topic()
    broker.produce(topic, BAD, keys=["k", "l", "m"])
    spout = KafkaSpout.transactional(broker.servers, topic, on_error=DeadLetterTopic(dead))
    assert counting.run(spout) == {"a": 1, "b": 1}
    [letter] = broker.read(dead)
    assert (letter.key(), letter.value()) == (b"l", b"\xff")
    headers = dict(letter.headers())
    assert headers["trident.topic"] == topic.encode()
    assert (headers["trident.partition"], headers["trident.offset"]) == (b"0", b"1")


def test_without_its_topic_for_dead_letters_a_stream_waits(
    broker: Broker, counting: Counting
) -> None:
    topic = broker.topic()
    broker.produce(topic, BAD)
    spout = KafkaSpout.transactional(
        broker.servers, topic, on_error=DeadLetterTopic("nowhere"), poll_timeout=1
    )
    with pytest.raises(OutageError, match="dead letters are not taken"):
        counting.run(spout, patience=0.01)


# The spout itself


@BOTH
def test_a_stream_that_has_nothing_to_read_writes_nothing_to_its_log(
    made: Any, broker: Broker, counting: Counting
) -> None:
    topic = broker.topic(2)
    broker.produce(topic, ["a"])
    with counting.start(made(broker.servers, topic)) as run:
        run.processAllAvailable()
        before = run.groups["values"].lastProgress
        for _ in range(5):
            run.processAllAvailable()
        assert run.groups["values"].lastProgress is before


def test_the_lag_is_told_without_asking_and_is_refreshed_by_another_thread(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic(2)
    broker.produce(topic, ["a", "b", "c"])
    made = KafkaSpout.opaque(broker.servers, topic).getCoordinator({}, None)
    assert made.lag(1) is None
    made.follow({})
    made.getPartitionsForBatch()
    assert made.lag(1) == 3
    made.follow({f"{topic}-0": {"first": 0, "next": 2, "topic": ""}})
    assert made.lag(2) == 1
    broker.produce(topic, ["d"])
    broker.produce(topic, ["e"], partition=1)
    assert made.lag(2) == 1
    monkeypatch.setattr(coordinator, "_FRESH", 0.0)
    while (lag := made.lag(2)) != 3:
        assert lag == 1
    made.close()


def test_what_an_open_transaction_holds_back_is_no_lag_but_a_figure_of_its_own(
    broker: Broker, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "_FRESH", 0.0)
    topic = broker.topic()
    broker.produce(topic, ["before"])
    producer = broker.transaction()
    producer.produce(topic, "within")
    producer.flush()
    broker.produce(topic, ["behind"])
    with counting.start(KafkaSpout.opaque(broker.servers, topic)) as run:

        def lag() -> dict[str, Any]:
            found: dict[str, Any] = run.figures()["groups"][0]["lag"]
            return found

        run.processAllAvailable()
        wait_until(lambda: lag()["held_back"] == 2)
        assert lag()["tuples"] == 0
        assert "trident_lag_held_back_tuples{" in prometheus.text(run.figures())
        producer.commit_transaction()
        wait_until(lambda: lag()["held_back"] == 0)
        run.processAllAvailable()
        wait_until(lambda: lag()["tuples"] == 0)
        assert counting.asked(run) == {"before": 1, "within": 1, "behind": 1}


def test_who_reads_open_transactions_is_held_back_by_none(broker: Broker) -> None:
    topic = broker.topic()
    producer = broker.transaction()
    producer.produce(topic, "within")
    producer.flush()
    settings = {"isolation.level": "read_uncommitted"}
    made = KafkaSpout.opaque(broker.servers, topic, settings=settings).getCoordinator({}, None)
    assert made.held_back() is None, "no batch has asked for the partitions"
    made.follow({})
    made.getPartitionsForBatch()
    assert (made.lag(1), made.held_back()) == (1, 0)
    made.close()
    producer.abort_transaction()


def test_without_the_driver_the_line_that_installs_it_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    coordinator = KafkaSpout.opaque("b:9092", "a").getCoordinator({}, None)
    with pytest.raises(ImportError, match=re.escape('pip install "trident-spark[kafka]"')):
        coordinator.getPartitionsForBatch()


@BOTH
def test_a_spout_pickles_and_shows_no_secret(made: Any) -> None:
    spout = made("b:9092", re.compile("a.*"), settings={"sasl.password": "hidden"})
    copy = pickle.loads(pickle.dumps(spout))
    assert repr(copy) == repr(spout)
    assert "sasl.password" in repr(spout)
    assert "hidden" not in repr(spout)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"first_poll": "EARLIST"}, "Did you mean 'EARLIEST'"),
        ({"first_poll": "TIMESTAMP"}, "timestamp= goes with"),
        ({"timestamp": 1}, "timestamp= goes with"),
        ({"fields": "values"}, "Did you mean 'value'"),
        ({"translator": _words}, "needs fields="),
        ({"value": "utf8"}, "there are: string, bytes, long, json"),
        ({"on_error": "ignore"}, "there are: fail, skip"),
        ({"max_records": 0}, "expected at least 1"),
        ({"settings": {"enable.auto.commit": True}}, "is the spout's own"),
        ({"topics": "a,b"}, "not the name of a topic: 'a,b'"),
        ({"topics": []}, "no topic is given"),
    ],
)
def test_a_wrong_argument_is_an_error(arguments: dict[str, Any], problem: str) -> None:
    given = {"servers": "b:9092", "topics": "a", **arguments}
    with pytest.raises(UsageError, match=problem):
        KafkaSpout.opaque(**given)


def _until(condition: Any, patience: float = 30.0) -> None:
    from trident.testing.servers.process import wait_until

    wait_until(condition, patience)
