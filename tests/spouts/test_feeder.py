"""A feeder's call returns when what it fed is committed, and never hangs on a run that ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from trident.errors import EmittedValueError
from trident.operations.emitted import ListCollector
from trident.spouts.feeder import FeederBatchSpout, FeedError

Feed = Callable[..., Future[None]]


@pytest.fixture
def spout() -> FeederBatchSpout:
    return FeederBatchSpout("word")


@pytest.fixture
def feed(spout: FeederBatchSpout) -> Iterator[Feed]:
    """Feed from another thread, and return once the spout has it."""
    with ThreadPoolExecutor() as pool:

        def fed(*words: str) -> Future[None]:
            arrived = Event()
            spout.whenReady(arrived.set)
            future = pool.submit(spout.feed, [[word] for word in words], 60)
            assert arrived.wait(60)
            return future

        yield fed


def batch(spout: FeederBatchSpout, txid: int) -> list[Any]:
    collector = ListCollector("spout", 1)
    spout.emitBatch(txid, collector)
    return [word for (word,) in collector.rows]


def test_each_feed_is_a_batch_that_returns_when_it_is_acknowledged(
    spout: FeederBatchSpout, feed: Feed
) -> None:
    spout.open({}, None)
    first, second = feed("a", "b"), feed("c")
    assert batch(spout, 1) == ["a", "b"]
    assert not first.done()
    spout.ack(1)
    first.result(60)
    assert batch(spout, 2) == ["c"]
    assert not second.done()
    spout.ack(2)
    second.result(60)
    assert not spout.isReady(3)
    assert batch(spout, 3) == []


def test_a_failed_batch_is_emitted_again(spout: FeederBatchSpout, feed: Feed) -> None:
    spout.open({}, None)
    fed = feed("a")
    assert batch(spout, 1) == batch(spout, 1) == ["a"]
    spout.ack(1)
    fed.result(60)


def test_an_acknowledgement_of_another_batch_means_nothing(
    spout: FeederBatchSpout, feed: Feed
) -> None:
    spout.open({}, None)
    fed = feed("a")
    batch(spout, 2)
    spout.ack(1)
    assert not fed.done()
    assert spout.isReady(2)
    spout.ack(2)
    fed.result(60)


def test_a_feed_before_the_run_waits_for_it(spout: FeederBatchSpout, feed: Feed) -> None:
    fed = feed("a")
    spout.open({}, None)
    batch(spout, 1)
    spout.ack(1)
    fed.result(60)


def test_the_end_of_the_run_ends_every_feed(spout: FeederBatchSpout, feed: Feed) -> None:
    spout.open({}, None)
    begun, waiting = feed("a"), feed("b")
    batch(spout, 1)
    spout.close()
    with pytest.raises(FeedError, match="its batch had begun"):
        begun.result(60)
    with pytest.raises(FeedError, match="it had not begun"):
        waiting.result(60)
    assert not spout.isReady(1)


def test_a_feed_that_no_batch_took_in_time_is_withdrawn(spout: FeederBatchSpout) -> None:
    with pytest.raises(TimeoutError, match="withdrawn"):
        spout.feed([["a"]], timeout=0)
    assert not spout.isReady(1)


def test_a_feed_that_is_not_committed_in_time_goes_on(spout: FeederBatchSpout) -> None:
    spout.whenReady(lambda: batch(spout, 1))
    with pytest.raises(TimeoutError, match="its batch goes on"):
        spout.feed([["a"]], timeout=0)
    assert batch(spout, 1) == ["a"]


def test_a_tuple_that_does_not_fit_feeds_nothing(spout: FeederBatchSpout) -> None:
    with pytest.raises(EmittedValueError):
        spout.feed([["a"], ["b", "c"]])
    assert not spout.isReady(1)


def test_a_feeder_feeds_one_run_at_a_time(spout: FeederBatchSpout) -> None:
    spout.open({}, None)
    with pytest.raises(RuntimeError, match="another run"):
        spout.open({}, None)
    spout.close()
    spout.open({}, None)


def test_a_feed_before_the_start_says_what_it_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    spout = FeederBatchSpout("word string")
    with pytest.raises(TimeoutError, match="no run of its topology started within 0 s"):
        spout.feed([["cat"]], timeout=0)
    [record] = caplog.records
    assert "no run of its topology has started. Call start() before feed()" in record.getMessage()
