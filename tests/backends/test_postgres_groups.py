"""States of one group in one database: whoever reads two of them in one statement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from uuid import uuid4

import pytest

from tests.batch.counting import CountingEngine, Words, counts, open_runner
from trident.backends.postgres.backing_map import PostgresMap
from trident.backends.postgres.connections import Database
from trident.backends.urls import state_from_url
from trident.batch.errors import BatchFailedError
from trident.batch.watchpoints import watching
from trident.log.errors import TakenOverError
from trident.log.file_log import FileLog
from trident.log.log import MemoryLog
from trident.states import Token
from trident.states.errors import FailedException, StateUnavailableError
from trident.states.maps.moving import swap_states
from trident.states.maps.stored_map import StoredMap
from trident.testing.servers.process import wait_until
from trident.testing.servers.promised import Served


class Stopped(Exception):
    """Ends a run as a crash does."""


@pytest.fixture
def names() -> list[str]:
    return [f"t{uuid4().hex}{letter}" for letter in "ab"]


@pytest.fixture
def opened(postgres_server: Served, names: list[str]) -> Iterator[Callable[[], list[StoredMap]]]:
    """Opens the two states, for one driver."""
    with ExitStack() as closed:

        def make(*options: str) -> list[StoredMap]:
            told = options or ("values=bigint", "values=json")
            urls = [
                f"{postgres_server.url}?prefix={name}&{option}"
                for name, option in zip(names, told, strict=True)
            ]
            states: list[Any] = [state_from_url(url).makeState() for url in urls]
            return [closed.enter_context(closing(state)) for state in states]

        yield make


class Looks:
    """What a client sees in both views, by one statement after each call of the library's."""

    def __init__(self, connection: Any, names: list[str]) -> None:
        self.seen: list[tuple[int, int]] = []
        self._connection = connection
        sums = [
            f"(SELECT coalesce(sum(value::text::int), 0) FROM {name}_committed)" for name in names
        ]
        self._both = f"SELECT {', '.join(sums)}"

    def look(self) -> None:
        found = self._connection.execute(self._both).fetchone()
        if found not in self.seen[-1:]:
            self.seen.append(found)


@pytest.fixture
def looks(
    postgres_server: Served, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Looks]]:
    """Begins to look."""
    import psycopg

    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        lend = Database.lend

        def begin() -> Looks:
            looking = Looks(connection, names)
            looking.look()

            @contextmanager
            def watched(server: Database) -> Iterator[Any]:
                with lend(server) as lent:
                    yield lent
                looking.look()

            monkeypatch.setattr(Database, "lend", watched)
            return looking

        yield begin


def fail_once(record: Any) -> None:
    if record.token == (2, 0):
        raise FailedException("the test wants it")


def together(*counted: int) -> list[tuple[int, int]]:
    return [(each, each) for each in counted]


def test_two_views_of_a_group_are_never_a_batch_apart(opened: Any, looks: Any) -> None:
    states = opened()
    engine = CountingEngine(*states)
    runner = open_runner(MemoryLog("log"), *states)
    seen = looks().seen
    for words in ("a", "a b", "a a b"):
        runner.run(Words(engine, words, interrupt=fail_once))
    assert seen == together(0, 1, 3, 6)


def test_announced_one_by_one_they_are_a_batch_apart(
    opened: Any, looks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresMap, "putControls", lambda *_: False)
    states = opened()
    runner = open_runner(MemoryLog("log"), *states)
    seen = looks().seen
    runner.run(Words(CountingEngine(*states), "a"))
    assert seen == [(0, 0), (1, 0), (1, 1)]


def stopped_before_the_announcement(log: Any, states: list[StoredMap]) -> None:
    def stop(point: str, token: Token) -> None:
        if point == "before announce" and token.txid == 2:
            raise Stopped

    runner = open_runner(log, *states)
    runner.run(Words(CountingEngine(*states), "a"))
    with watching(stop), pytest.raises(Stopped):
        runner.run(Words(CountingEngine(*states), "a b"))


def test_an_announcement_that_a_crash_left_out_is_made_up_for_together(
    opened: Any, looks: Any
) -> None:
    log = MemoryLog("log")
    stopped_before_the_announcement(log, opened())
    seen = looks().seen
    states = opened()
    runner = open_runner(log, *states)
    assert seen == together(1, 3)
    runner.run(Words(CountingEngine(*states), "a"))
    assert seen == together(1, 3, 4)


def test_a_run_that_was_overtaken_before_its_announcement_sets_nothing_apart(
    opened: Any, looks: Any, tmp_path: Any
) -> None:
    place = tmp_path / "log"
    first, second = opened(), opened()
    runner = open_runner(FileLog(place), *first)
    seen = looks().seen

    def overtake(point: str, token: Token) -> None:
        if point == "before announce" and token == (1, 0):
            other = open_runner(FileLog(place), *second)
            other.run(Words(CountingEngine(*second), "a b"))

    with watching(overtake):
        runner.run(Words(CountingEngine(*first), "a"))
    assert seen == together(0, 1, 3)
    with pytest.raises(TakenOverError):
        runner.run(Words(CountingEngine(*first), "a"))
    assert seen == together(0, 1, 3)


def test_an_announcement_whose_answer_is_lost_is_found_made(
    opened: Any, looks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, lost = PostgresMap.putControls, []

    def lose(self: PostgresMap, changes: Any) -> bool:
        done = put(self, changes)
        if not lost:
            lost.append(done)
            raise StateUnavailableError("here", "no answer", "It is retried.")
        return done

    monkeypatch.setattr(PostgresMap, "putControls", lose)
    states = opened()
    engine = CountingEngine(*states)
    runner = open_runner(MemoryLog("log"), *states)
    seen = looks().seen
    for _ in range(2):
        runner.run(Words(engine, "a"))
    assert (lost, seen) == ([True], together(0, 1, 2))


def test_states_of_other_kinds_are_announced_with_them(opened: Any) -> None:
    states = opened("kind=transactional", "kind=opaque&table=shared-with-others")
    runner = open_runner(MemoryLog("log"), *states)
    runner.run(Words(CountingEngine(*states), "a b"))
    assert [state.control.read().committed for state in states] == [1, 1]
    assert [counts(state, "a b") for state in states] == [[1, 1], [1, 1]]


def test_a_state_whose_record_another_has_changed_stops_no_other(
    opened: Any, postgres_server: Served, names: list[str]
) -> None:
    states = opened()

    def change(point: str, token: Token) -> None:
        if point == "before announce":
            [first, _] = states
            begun = first.control.read()
            first.control.replace(type(begun)(begun.log_id, Token(7, 0), 0))

    runner = open_runner(MemoryLog("log"), *states)
    with watching(change):
        runner.run(Words(CountingEngine(*states), "a"))
    assert [state.control.read().committed for state in states] == [0, 1]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_records_are_replaced_all_or_none_though_one_is_being_changed(
    opened: Any, postgres_server: Served, names: list[str], end: str
) -> None:
    import psycopg

    states = opened()
    for state in states:
        state.backing.putControl(b"old", None)
    done: list[bool] = []
    changes = [(name, b"new", b"old") for name in reversed(names)]
    with psycopg.connect(postgres_server.url, autocommit=True) as other:
        other.execute("BEGIN")
        other.execute("UPDATE trident_states SET control = 'x' WHERE name = %s", [names[1]])
        putting = threading.Thread(
            target=lambda: done.append(states[0].backing.putControls(changes))
        )
        putting.start()
        waiting = "SELECT FROM pg_locks WHERE NOT granted AND %s = ANY (pg_blocking_pids(pid))"
        process = other.info.backend_pid
        wait_until(lambda: other.execute(waiting, [process]).fetchall())
        other.execute(end)
        putting.join()
    found = [state.backing.getControl() for state in states]
    if end == "COMMIT":
        assert (done, found) == ([False], [b"old", b"x"])
    else:
        assert (done, found) == ([True], [b"new", b"new"])


def test_an_attempt_that_fails_for_good_leaves_both_views_as_they_were(
    opened: Any, looks: Any
) -> None:
    states = opened()
    engine = CountingEngine(*states)
    runner = open_runner(MemoryLog("log"), *states, retries=0)
    runner.run(Words(engine, "a"))
    seen = looks().seen
    with pytest.raises(BatchFailedError):
        runner.run(Words(engine, "a b", interrupt=fail_once))
    assert seen == together(1)


def test_views_show_what_was_built_anew_of_all_states_at_once(
    postgres_server: Served, names: list[str], looks: Any
) -> None:
    urls = [f"{postgres_server.url}?prefix={name}&values=bigint" for name in names]
    factories = [state_from_url(url) for url in urls]
    for factory in factories:
        for made, value in (factory, 1), (factory.at(f"{factory.identity[2]}2"), 5):
            with closing(made.makeState()) as state:
                state.beginCommit(1)
                state.multiPut([("dog",)], [value])
                state.commit(1)
    looking = looks()
    swap_states([(factory, f"{factory.identity[2]}2") for factory in factories])
    assert looking.seen == together(1, 5)
    with closing(factories[0].makeState()) as state:
        assert state.multiGet([("dog",)]) == [5]
