"""A checkpoint loses its newest entries, and with them what a transactional batch was to hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import PropertyMock

import pytest

from tests.batch.counting import CountingEngine, Words, counts, open_runner
from tests.states.abilities import FencedMap, TroubledServer
from trident.backends.checkpoints import checkpoint_from_url
from trident.backends.state_url import StateURL
from trident.batch.runner import BatchRunner
from trident.batch.watchpoints import watching
from trident.errors import FailedException, LostPlanError
from trident.log.entry import MOMENT, LogEntry
from trident.log.log import Log, MemoryLog
from trident.log.stored_checkpoint import StoredLog
from trident.states.control import ControlRecord
from trident.states.errors import StateError
from trident.states.maps.factory import OpaqueMap, TransactionalMap
from trident.states.maps.stored_map import StoredMap
from trident.states.values import Token
from trident.testing.servers.promised import Served

FIRST = ("a", "a b", "b", "a")
"""What the source has for each batch."""
AFTER = ("c", "b b c", "c", "b")
"""What it has for a batch that is planned anew."""


class Planned(Words):
    """A batch of which the plan is its words."""

    def __init__(self, engine: CountingEngine, words: str, **options: Any) -> None:
        super().__init__(engine, words, plans={"words": words}, **options)

    def emit(self, token: Token, metadata: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
        self.attempts = [planned["words"]]
        return super().emit(token, metadata, planned)


def run_batch(runner: BatchRunner, state: StoredMap, words: str, **options: Any) -> None:
    runner.run(Planned(CountingEngine(state), words, **options))


def go_on(log: Log, state: StoredMap, source: tuple[str, ...]) -> None:
    runner = open_runner(log, state)
    while runner.next_txid <= len(source):
        run_batch(runner, state, source[runner.next_txid - 1])


def log_at(entry: LogEntry) -> Log:
    log = MemoryLog("log")
    log.append(entry)
    return log


def store_with(entries: Mapping[bytes, tuple[bytes, int]]) -> TroubledServer:
    server = TroubledServer()
    server.entries.update(entries)
    return server


@dataclass(frozen=True)
class Moment:
    """What the store and the log held."""

    point: str
    entries: dict[bytes, tuple[bytes, int]]
    entry: LogEntry

    def expected(self) -> list[int | None]:
        """What is counted where a log goes on from this entry, planning the rest anew."""
        known = self.entry.committed + (self.entry.planned is not None)
        words = Counter(" ".join((*FIRST[:known], *AFTER[known:])).split())
        return [words.get(word) for word in "abc"]


def moments() -> list[Moment]:
    """Every point of every batch, in order."""
    server, log, found = TroubledServer(), MemoryLog("log"), []

    def look(point: str, token: Token) -> None:
        newest = log.newest()
        assert newest is not None
        found.append(Moment(f"{point} of {token}", dict(server.entries), newest))

    with watching(look):
        go_on(log, TransactionalMap(FencedMap(server)), FIRST)
    return found


def silently_wrong() -> list[tuple[str, str]]:
    """The moments of store and log from which a run goes on, and counts wrongly."""
    found = moments()
    silent = []
    for index, later in enumerate(found):
        for earlier in found[: index + 1]:
            state = TransactionalMap(FencedMap(store_with(later.entries)))
            try:
                go_on(log_at(earlier.entry), state, AFTER)
            except StateError:
                assert earlier.entry != later.entry, "no start without a loss is an error"
                continue
            if counts(state, "a b c") != earlier.expected():
                silent.append((later.point, earlier.point))
    return silent


def test_no_start_with_an_earlier_log_counts_wrongly_without_a_word() -> None:
    assert not silently_wrong()


def test_without_the_plan_in_the_record_some_start_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogEntry, "plan", PropertyMock(return_value=None))
    assert silently_wrong()


@pytest.fixture
def lossy() -> tuple[Log, TransactionalMap]:
    """The second batch is written, and its log holds no more than the first."""
    found = moments()
    written = next(each for each in found if each.point.startswith("after write of Token(txid=2"))
    before = next(each for each in found if each.point.startswith("after announce of Token(txid=1"))
    return log_at(before.entry), TransactionalMap(FencedMap(store_with(written.entries)))


def test_the_error_names_the_state_the_batch_and_how_to_go_on(
    lossy: tuple[Log, TransactionalMap],
) -> None:
    with pytest.raises(
        LostPlanError, match=r"count has begun batch 2 .*accept_loss=\{'count': 2\}"
    ):
        open_runner(*lossy)
    with pytest.raises(LostPlanError):
        open_runner(*lossy)


def test_the_lost_plan_may_be_accepted_by_name(lossy: tuple[Log, TransactionalMap]) -> None:
    log, state = lossy
    with pytest.raises(LostPlanError):
        open_runner(log, state, accept_loss={"count": 1})
    run_batch(open_runner(log, state, accept_loss={"count": 2}), state, "a b c")
    assert counts(state, "a b c") == [2, 1, 1]  # a and b are as the lost plan left them
    open_runner(log, state)


def test_a_plan_that_is_lost_of_the_first_batch_may_be_accepted_too() -> None:
    found = moments()
    written = next(each for each in found if each.point.startswith("after write of Token(txid=1"))
    state = TransactionalMap(FencedMap(store_with(written.entries)))
    log = log_at(replace(written.entry, planned=None))
    with pytest.raises(LostPlanError):
        open_runner(log, state)
    run_batch(open_runner(log, state, accept_loss={"count": 1}), state, "a c")
    assert counts(state, "a c") == [1, 1]


def test_an_attempt_that_failed_is_followed_by_another_with_the_same_plan() -> None:
    state = TransactionalMap(FencedMap(TroubledServer()))
    failures = [FailedException("once")]

    def fail_once(record: ControlRecord) -> None:
        if failures:
            raise failures.pop()

    runner = open_runner(MemoryLog("log"), state)
    run_batch(runner, state, "a", interrupt=fail_once)
    run_batch(runner, state, "a b")
    assert counts(state, "a b") == [2, 1]


def test_a_plan_made_anew_in_the_same_words_is_gone_on_with(
    lossy: tuple[Log, TransactionalMap],
) -> None:
    log, state = lossy
    newest = log.newest()
    assert newest is not None
    log.append(replace(newest, number=newest.number + 1, planned={"words": FIRST[1]}))
    run_batch(open_runner(log, state), state, "never asked for")
    assert counts(state, "a b") == [2, 1]


def test_opaque_states_alone_need_no_plan_in_their_record() -> None:
    state, records = OpaqueMap(FencedMap(TroubledServer())), []
    runner = open_runner(MemoryLog("log"), state)
    run_batch(runner, state, "a", interrupt=records.append)
    assert [record.plan for record in records] == [None]


def test_of_states_side_by_side_the_transactional_one_is_named() -> None:
    log, first, second = MemoryLog("log"), OpaqueMap(FencedMap(TroubledServer())), TroubledServer()
    transactional = TransactionalMap(FencedMap(second))
    runner = open_runner(log, first, transactional)
    before = log.newest()
    with pytest.raises(ZeroDivisionError):
        runner.run(
            Planned(CountingEngine(first, transactional), "a", interrupt=lambda record: 1 / 0)
        )
    assert before is not None
    with pytest.raises(LostPlanError, match="state count2 "):
        open_runner(log_at(before), first, transactional)


def test_the_time_of_a_batch_alone_is_no_plan() -> None:
    entry = LogEntry(1, "", "log", begun=Token(1, 0), committed=0, planned={MOMENT: 17})
    assert entry.plan is None


def test_a_redis_that_lost_the_planning_entry_stops_the_next_start(
    redis_server: Served, request: pytest.FixtureRequest
) -> None:
    state = TransactionalMap(FencedMap(TroubledServer()))
    url = f"{redis_server.url}?prefix={request.node.name}"
    with ExitStack() as opened:
        store = checkpoint_from_url(StateURL.parse(url))
        opened.callback(store.release)
        runner = open_runner(StoredLog(store, "words"), state)
        run_batch(runner, state, "a")
        held = store.read("words")
        assert held is not None
        with pytest.raises(ZeroDivisionError):
            run_batch(runner, state, "a b", interrupt=lambda record: 1 / 0)
        assert store.replace("words", held, store.read("words"))
        with pytest.raises(LostPlanError, match="batch 2"):
            open_runner(StoredLog(store, "words"), state)
