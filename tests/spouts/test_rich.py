"""Spouts that emit one record at a time."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest

from tests.spouts.counting import count
from trident import TridentTopology
from trident.batch.errors import BatchFailedError
from trident.batch.watchpoints import watching
from trident.errors import PlanError
from trident.storm import IRichSpout, OutputFieldsDeclarer, SpoutOutputCollector
from trident.testing import fail_at

# Such streams are non-transactional, which a start warns of.
pytestmark = pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")


class Queue(IRichSpout):
    """Emits words until each is acked; a failed one comes again, at the end."""

    maxBatchSize = 2

    def __init__(self, words: str) -> None:
        self.waiting = deque(enumerate(words.split()))
        self.sent: dict[Any, str] = {}
        self.calls: list[Any] = []

    def open(self, conf: Any, context: Any, collector: SpoutOutputCollector) -> None:
        self.collector = collector

    def nextTuple(self) -> None:
        if self.waiting:
            number, word = self.waiting.popleft()
            self.sent[number] = word
            self.collector.emit([word], number)

    def ack(self, msgId: Any) -> None:
        self.calls.append(("ack", msgId))
        del self.sent[msgId]

    def fail(self, msgId: Any) -> None:
        self.calls.append(("fail", msgId))
        self.waiting.append((msgId, self.sent.pop(msgId)))

    def close(self) -> None:
        self.calls.append(("close",))

    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word string")


def test_messages_are_acked_once_their_batch_is_committed(tmp_path: Path) -> None:
    spout = Queue("a b a")
    assert count(tmp_path, spout, "word", ["a", "b"]) == [2, 1]
    assert spout.calls == [("ack", 0), ("ack", 1), ("ack", 2), ("close",)]


def test_messages_of_a_failed_attempt_are_failed_and_come_again(tmp_path: Path) -> None:
    spout = Queue("a b a")
    with fail_at("after write", txid=1):
        assert count(tmp_path, spout, "word", ["a", "b"]) == [2, 1]
    assert spout.calls[:2] == [("fail", 0), ("fail", 1)]
    assert sorted(call for call in spout.calls if call[0] == "ack") == [
        *(("ack", 0), ("ack", 1), ("ack", 2))
    ]


def test_messages_that_are_pending_at_the_end_are_failed(tmp_path: Path) -> None:
    spout = Queue("a")
    with fail_at("after write", times=9), pytest.raises(BatchFailedError):
        count(tmp_path, spout, "word", ["a"], retries=0)
    assert spout.calls == [("fail", 0), ("close",)]


def test_a_batch_that_takes_longer_than_messages_live_is_failed(tmp_path: Path) -> None:
    spout = Queue("a")
    spout.messageTimeout = 0.0
    with pytest.raises(BatchFailedError, match=r"time out after 0 s \(messageTimeout of Queue\)"):
        count(tmp_path, spout, "word", ["a"], retries=1)
    assert spout.calls == [("fail", 0), ("fail", 0), ("close",)]
    assert count(tmp_path, Queue(""), "word", ["a"]) == [None]


def test_records_without_an_id_are_counted_and_not_acked(tmp_path: Path) -> None:
    class Plain(Queue):
        def nextTuple(self) -> None:
            if self.waiting:
                self.collector.emit([self.waiting.popleft()[1]])

    spout = Plain("a b a")
    assert count(tmp_path, spout, "word", ["a", "b"]) == [2, 1]
    assert spout.calls == [("close",)]


def test_several_records_of_one_call_are_one_batch(tmp_path: Path) -> None:
    class Several(Queue):
        def nextTuple(self) -> None:
            if self.waiting:
                self.waiting.clear()
                self.collector.emitColumns({"word": ["a", "b", "a"]})

    assert count(tmp_path, Several("x"), "word", ["a", "b", "x"]) == [2, 1, None]


def test_such_a_stream_is_non_transactional_and_can_not_be_declared_stronger() -> None:
    with pytest.raises(PlanError, match="Queue is non-transactional"):
        TridentTopology().newStream("words", Queue("a"), "opaque")


def test_a_spout_that_declares_no_fields_is_an_error() -> None:
    class Silent(Queue):
        def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
            pass

    with pytest.raises(PlanError, match="Silent.declareOutputFields declared no fields"):
        TridentTopology().newStream("words", Silent("a"))


def test_an_idle_stream_commits_nothing(tmp_path: Path) -> None:
    spout, topology = Queue("a"), TridentTopology()
    topology.newStream("words", spout)
    with topology.start(checkpoint=tmp_path) as run:
        for _ in range(3):
            run.processAllAvailable()
        assert [batch.txid for batch in run.groups["words"].recentProgress] == [1]


def test_a_message_whose_batch_is_committed_is_never_failed(tmp_path: Path) -> None:
    spout = Queue("a b")

    def broken(msgId: Any) -> None:
        spout.calls.append(("ack", msgId))
        raise ConnectionError("the broker is away")

    spout.ack = broken  # type: ignore[method-assign]
    with pytest.raises(ConnectionError, match="the broker is away"):
        count(tmp_path, spout, "word", ["a"])
    assert spout.calls == [("ack", 0), ("ack", 1), ("close",)]


def test_messages_whose_batch_may_be_committed_are_left_to_their_source(tmp_path: Path) -> None:
    spout = Queue("a")

    def break_down(point: str, token: Any) -> None:
        if point == "before announce":
            raise ConnectionError("the store is away")

    with watching(break_down), pytest.raises(ConnectionError):
        count(tmp_path, spout, "word", ["a"])
    assert spout.calls == [("close",)]
    assert count(tmp_path, Queue(""), "word", ["a"]) == [1]


def test_messages_emitted_before_a_batch_could_not_be_are_failed(tmp_path: Path) -> None:
    class Broken(Queue):
        def nextTuple(self) -> None:
            if not self.waiting:
                raise ConnectionError("the broker is away")
            super().nextTuple()

    spout = Broken("a")
    with pytest.raises(ConnectionError):
        count(tmp_path, spout, "word", ["a"])
    assert spout.calls == [("fail", 0), ("close",)]


def test_every_message_is_failed_though_one_can_not_be(tmp_path: Path) -> None:
    spout = Queue("a b")

    def broken(msgId: Any) -> None:
        spout.calls.append(("fail", msgId))
        raise ConnectionError("the broker is away")

    spout.fail = broken  # type: ignore[method-assign]
    with fail_at("after write"), pytest.raises(ConnectionError):
        count(tmp_path, spout, "word", ["a"])
    assert spout.calls == [("fail", 0), ("fail", 1), ("close",)]


def test_a_batch_that_is_full_asks_for_no_more(tmp_path: Path) -> None:
    class Columns(Queue):
        def nextTuple(self) -> None:
            self.calls.append("next")
            if self.waiting:
                self.collector.emitColumns({"word": [self.waiting.popleft()[1]] * 2})

    spout = Columns("a b")
    assert count(tmp_path, spout, "word", ["a", "b"]) == [2, 2]
    assert spout.calls == ["next", "next", "next", ("close",)]
