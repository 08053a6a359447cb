"""A topic as a sink: what its own reader finds is what the topology has committed, once."""

from __future__ import annotations

import json
import random
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.kafka import killed_sink
from tests.kafka.broker import Broker
from trident import FixedBatchSpout, KafkaStateUpdater, StateUpdater, TridentTopology
from trident.backends import kafka
from trident.batch.watchpoints import POINTS
from trident.errors import LostStateError, OperationError, StaleBatchError, StateError
from trident.states.control import ControlRecord
from trident.states.errors import UsageError
from trident.states.state import State
from trident.states.values import Token
from trident.testing import fail_at, hold_at


class Writing:
    """A topology that appends words to a topic, two a batch."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.topic = broker.topic()
        self.sink = kafka.sink(broker.servers, self.topic, prefix="words")
        self.folder = folder

    def start(self, *words: str, **options: Any) -> Any:
        topology = TridentTopology()
        spout = FixedBatchSpout("word string", 2, *([word] for word in words))
        topology.newStream("words", spout).partitionPersist(
            self.sink, "word", KafkaStateUpdater("word", key="word"), name="words"
        )
        return topology.start(checkpoint=self.folder / "run", trigger="available", **options)

    def run(self, *words: str, **options: Any) -> None:
        with self.start(*words, **options) as run:
            run.awaitTermination(60)

    def committed(self) -> list[str]:
        """What the sink's own reader finds."""
        return [value.decode() for value in values_of(self.sink)]

    def plain(self) -> list[str]:
        """What any consumer of committed transactions finds."""
        return [message.value().decode() for message in self.broker.read(self.topic)]


def values_of(sink: kafka.KafkaSink, limit: int = 10_000) -> list[bytes]:
    reader = sink.records()
    try:
        found, at, before = [], 0, -1
        while at != before:
            before = at
            records, at = reader.read(0, at, limit)
            found += [record.value or b"" for record in records]
        return found
    finally:
        reader.close()


def letters_of(sink: kafka.KafkaSink) -> list[int]:
    """The numbers of dead letters."""
    return [json.loads(json.loads(value)["tuple"])["number"] for value in values_of(sink)]


@pytest.fixture
def writing(broker: Broker, tmp_path: Path) -> Writing:
    return Writing(broker, tmp_path)


def test_what_is_committed_is_read_once_in_order(writing: Writing) -> None:
    writing.run("a", "b", "c")
    assert writing.committed() == writing.plain() == ["a", "b", "c"]
    writing.run("a", "b", "c", "of a batch that is committed", "d", "e")
    assert writing.committed() == ["a", "b", "c", "d", "e"]
    assert values_of(writing.sink, limit=1) == [b"a", b"b", b"c", b"d", b"e"]


def test_records_tell_their_attempt(writing: Writing) -> None:
    with fail_at("after begin", txid=1):
        writing.run("a")
    [message] = writing.broker.read(writing.topic)
    assert message.key() == b"a"
    assert dict(message.headers()) == {
        "trident.token": b"1/1",
        "trident.state": f"{writing.topic}.words.trident".encode(),
    }


@pytest.mark.parametrize("token", [None, b"", b"1", b"1/0/0", b"-1/0", b"x/y", b"9" * 5000 + b"/0"])
def test_a_record_that_no_attempt_of_the_state_can_have_written_is_passed_over(
    token: bytes | None, writing: Writing
) -> None:
    writing.run("a")
    forged: list[tuple[str, bytes]] = [] if token is None else [("trident.token", token)]
    producer = writing.broker.transaction()
    state = f"{writing.topic}.words.trident".encode()
    producer.produce(writing.topic, b"theirs", headers=[("trident.state", state), *forged])
    producer.commit_transaction()
    writing.run("a", "b", "c")
    assert writing.committed() == ["a", "c"]


def test_headers_of_a_record_do_not_replace_those_of_its_attempt(writing: Writing) -> None:
    class Forging(StateUpdater[Any]):
        def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
            for each in tuples:
                state.send(each[0].encode(), headers=[("trident.token", b"7/7")])

    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 2, ["a"])
    stream = topology.newStream("words", spout)
    stream.partitionPersist(writing.sink, "word", Forging(), name="words")
    with topology.start(checkpoint=writing.folder / "run", trigger="available") as run:
        run.awaitTermination(60)
    assert writing.committed() == ["a"]


@pytest.mark.parametrize("point", POINTS[:7])
def test_an_attempt_that_failed_does_not_count(point: str, writing: Writing) -> None:
    with fail_at(point, txid=2):
        writing.run("a", "b", "c", "d", "e")
    assert writing.committed() == ["a", "b", "c", "d", "e"]
    # Kafka knows nothing of attempts that the topology gave up after they were written.
    written_before = POINTS.index(point) >= POINTS.index("after write")
    assert len(writing.plain()) == (7 if written_before else 5)


def test_a_reader_ends_before_what_is_not_committed_yet_and_goes_on_there(
    writing: Writing,
) -> None:
    reader = writing.sink.records()
    with hold_at("before commit", txid=2) as hold, writing.start("a", "b", "c") as run:
        hold.wait_reached()
        records, following = reader.read()
        assert [record.value for record in records] == [b"a", b"b"]
        assert reader.read(0, following) == ([], following)
        hold.release()
        run.awaitTermination(60)
        records, _ = reader.read(0, following)
        assert [(record.txid, record.value) for record in records] == [(2, b"c")]
    reader.close()


def begun(sink: kafka.KafkaSink, token: Token) -> tuple[State, ControlRecord]:
    state = sink.makeState()
    record = ControlRecord("log", token, token.txid - 1)
    assert state.control is not None
    state.control.begin(record)
    state.beginCommit(record)
    return state, record


def test_a_writer_that_was_overtaken_is_fenced(writing: Writing) -> None:
    late, its = begun(writing.sink, Token(1, 0))
    late.send(b"late")  # type: ignore[attr-defined]
    state, record = begun(writing.sink, Token(1, 1))
    state.send(b"in time")  # type: ignore[attr-defined]
    with pytest.raises(StaleBatchError):
        late.commit(its)
    state.commit(record)
    with pytest.raises(StaleBatchError):
        late.control.ready(its)  # type: ignore[union-attr]
    assert writing.plain() == ["in time"]
    for each in (late, state):
        each.close()


def test_what_a_writer_left_open_is_aborted_by_the_next_one(writing: Writing) -> None:
    control = f"{writing.topic}.words.trident"
    writing.run("a")
    left = writing.broker.transaction(control)
    left.produce(writing.topic, "left open")
    left.flush()
    writing.run("a", "b", "c")
    assert writing.committed() == writing.plain() == ["a", "c"]


def test_a_sink_that_lost_its_control_record_is_an_error(writing: Writing) -> None:
    writing.run("a")
    writing.broker.delete(f"{writing.topic}.words.trident")
    with pytest.raises(LostStateError):
        writing.run("a", "b", "c")


def test_two_sinks_share_a_topic(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    sinks = [kafka.sink(broker.servers, topic, prefix=name) for name in ("a", "b")]
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 2, ["x"], ["y"]))
    for sink in sinks:
        words.partitionPersist(sink, "word", KafkaStateUpdater("word"), name=str(sink.prefix))
    with topology.start(checkpoint=tmp_path / "run", trigger="available") as run:
        run.awaitTermination(60)
    assert [values_of(sink) for sink in sinks] == [[b"x", b"y"]] * 2


def test_values_are_strings_bytes_null_or_json(writing: Writing) -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("value", 9, ["s"], [b"b"], [None], [{"n": [1, 2.5]}], [7])
    topology.newStream("values", spout).partitionPersist(
        writing.sink, "value", KafkaStateUpdater("value")
    )
    with topology.start(checkpoint=writing.folder / "run", trigger="available") as run:
        run.awaitTermination(60)
    found = [message.value() for message in writing.broker.read(writing.topic)]
    assert found == [b"s", b"b", None, b'{"n":[1,2.5]}', b"7"]


def test_a_record_that_is_too_large_stops_the_run(writing: Writing) -> None:
    with pytest.raises((StateError, OperationError), match="a record is too large"):
        writing.run("x" * 2_000_000)


def test_a_sink_is_part_of_a_topology(writing: Writing) -> None:
    with pytest.raises(StateError, match="part of a topology"):
        writing.sink.makeState().beginCommit(1)


def test_without_the_driver_the_line_that_installs_it_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ImportError, match=re.escape('pip install "trident-spark[kafka]"')):
        kafka.sink("b:9092", "t").records().read()


def test_a_sink_shows_no_secret_and_keeps_its_own_settings() -> None:
    assert "hidden" not in repr(kafka.sink("b:9092", "t", settings={"sasl.password": "hidden"}))
    with pytest.raises(UsageError, match="'transactional.id' is the sink's own"):
        kafka.sink("b:9092", "t", settings={"transactional.id": "mine"})


def test_a_sink_is_exact_whenever_its_driver_is_killed(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    sink = kafka.sink(broker.servers, topic, prefix="numbers")
    bad = kafka.sink(
        broker.servers, broker.topic(name=f"{topic}.bad"), prefix="dead_letters.numbers"
    )
    rounds = [(point, number % 2) for number, point in enumerate(POINTS)]
    rounds += [("clock", 0.4 + 0.1 * number) for number in range(6)]
    random.Random(3).shuffle(rounds)
    numbers = range(killed_sink.NUMBERS)
    expected = [str(number).encode() for number in numbers if number % killed_sink.SEVENTH]
    for how, number in rounds:
        ended = forks.run(killed_sink, tmp_path, broker.servers, topic, how, number)
        assert ended.code in (0, -signal.SIGKILL, -signal.SIGALRM), ended.printed
        seen, letters = values_of(sink), letters_of(bad)
        assert seen == expected[: len(seen)]
        assert letters == [*numbers[:: killed_sink.SEVENTH]][: len(letters)]
    killed_sink.main(tmp_path, broker.servers, topic, "nowhere", 0)
    assert values_of(sink) == expected
    assert letters_of(bad) == [*numbers[:: killed_sink.SEVENTH]]
    # Attempts whose transaction was committed, and they were not: more than a plain reader wants.
    assert len(broker.read(topic)) > len(expected)
