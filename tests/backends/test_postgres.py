"""What only PostgreSQL does: tables for people, a view of what is committed, adding, waiting."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any
from uuid import uuid4

import pytest

from tests.packaging.conftest import ROOT
from trident import Fields, FixedBatchSpout, TridentTopology
from trident.backends.memory import MemoryMapState
from trident.backends.postgres import statements, wait_committed
from trident.backends.urls import state_from_url
from trident.errors import CorruptStateError, StateError
from trident.operations.builtin import Count, Sum
from trident.states import ControlRecord, Token
from trident.states.errors import (
    LongOverflowError,
    NoStateError,
    SerializationError,
    StaleBatchError,
    StateUnavailableError,
    StateURLError,
)
from trident.states.keys import encode_key
from trident.states.maps.moving import swap_states
from trident.states.maps.stored_map import StoredMap
from trident.states.testing.checks import ODD_KEYS
from trident.states.values import OpaqueValue
from trident.testing.servers.process import wait_until
from trident.testing.servers.promised import Served

Open = Callable[..., StoredMap]
SQL = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def sql(postgres_server: Served) -> Iterator[SQL]:
    """A client of SQL, that knows nothing of states."""
    import psycopg

    with psycopg.connect(postgres_server.url, autocommit=True) as connection:

        def ask(statement: Any, *values: Any) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description is not None else []

        yield ask


@pytest.fixture
def name() -> str:
    return f"t{uuid4().hex}"


@pytest.fixture
def opened(postgres_server: Served, name: str) -> Iterator[Open]:
    """Opens the state called `name`, with options of its URL."""
    made: list[StoredMap] = []

    def make(**options: str) -> StoredMap:
        told = "&".join(f"{key}={value}" for key, value in {"prefix": name, **options}.items())
        state: Any = state_from_url(f"{postgres_server.url}?{told}").makeState()
        made.append(state)
        return state  # type: ignore[no-any-return]

    yield make
    for state in made:
        state.close()


def counted(state: StoredMap, own: ControlRecord, **amounts: Any) -> None:
    """Run an attempt up to its last write."""
    state.control.begin(own)
    state.beginCommit(own)
    state.multiFold([word.encode() for word in amounts], list(amounts.values()), Sum())
    state.commit(own)


def committed(state: StoredMap, own: ControlRecord, **amounts: Any) -> None:
    counted(state, own, **amounts)
    assert state.control.announce(state.control.ready(own))


def record(txid: int, attempt: int = 0, **retried: int) -> ControlRecord:
    told = {int(name[1:]): attempt for name, attempt in retried.items()}
    return ControlRecord("log", Token(txid, attempt), txid - 1, told)


def test_a_state_that_was_built_anew_may_have_other_columns_in_its_view(
    postgres_server: Served, name: str, sql: SQL
) -> None:
    url = f"{postgres_server.url}?prefix={name}&columns="
    factory: Any = state_from_url(f"{url}word:date,count")
    for made, txid in (state_from_url(f"{url}word,total"), 1), (factory.at(f"{name}2"), 2):
        with closing(made.makeState()) as state:  # type: ignore[attr-defined]
            state.beginCommit(txid)
            state.multiPut([(date(2026, 1, 2),)], [txid])
            state.commit(txid)
    sql(f"CREATE VIEW {name}_mine AS SELECT * FROM {name}_committed")
    mine = f"view {name}_mine depends on view {name}_committed. Drop what depends on it"
    with pytest.raises(StateError, match=mine):
        swap_states([(factory, f"{name}2")])
    assert sql(f"SELECT total FROM {name}_committed") == [(1,)]
    sql(f"DROP VIEW {name}_mine")
    swap_states([(factory, f"{name}2")])
    assert sql(f"SELECT word, count FROM {name}_committed") == [(date(2026, 1, 2), 2)]


@pytest.mark.parametrize("values", ["json", "bigint"])
def test_the_view_shows_what_is_committed_at_any_moment(
    opened: Open, sql: SQL, name: str, values: str
) -> None:
    state = opened(values=values, columns="word,count")

    def shown() -> list[tuple[Any, ...]]:
        return sql(f"SELECT word, count FROM {name}_committed ORDER BY word")

    committed(state, record(1), cat=1, dog=2)
    assert shown() == [("cat", 1), ("dog", 2)]
    counted(state, record(2), cat=10, cow=10)
    assert shown() == [("cat", 1), ("dog", 2)], "batch 2 is under way"
    counted(state, record(2, 1), dog=20)
    assert shown() == [("cat", 1), ("dog", 2)], "it is tried again, with other words"
    assert state.control.announce(state.control.ready(record(2, 1)))
    assert shown() == [("cat", 1), ("dog", 22)]
    counted(state, record(3, t2=1), cat=100)
    assert shown() == [("cat", 1), ("dog", 22)]
    assert state.control.announce(state.control.ready(record(3, t2=1)))
    assert shown() == [("cat", 101), ("dog", 22)]


def test_a_removed_key_is_not_in_the_view_and_leaves_the_table(
    opened: Open, sql: SQL, name: str
) -> None:
    state = opened()
    committed(state, record(1), cat=1, dog=2)
    own = record(2)
    state.control.begin(own)
    state.beginCommit(own)
    state.multiRemove([("cat",)])
    state.commit(own)
    state.control.announce(state.control.ready(own))
    assert sql(f"SELECT key FROM {name}_committed") == [("dog",)]
    committed(state, record(3), dog=1)
    assert sql(f"SELECT key FROM {name}") == [(b"dog",)]


def test_the_view_has_a_column_for_each_field_of_a_key(opened: Open, sql: SQL, name: str) -> None:
    state = opened(values="bigint", columns="country,year,people")
    state.beginCommit(1)
    state.multiPut([("Perú", 2020), ("Chad", None)], [33, 16])
    state.commit(1)
    found = sql(f"SELECT country, year, people FROM {name}_committed ORDER BY people")
    assert found == [("Chad", None, 16), ("Perú", "2020", 33)]


@pytest.mark.parametrize("options", [{}, {"columns": "word,count"}, {"table": "odd-shared"}])
def test_no_key_breaks_the_view(opened: Open, sql: SQL, name: str, options: dict[str, str]) -> None:
    state = opened(**options)
    state.beginCommit(1)
    state.multiPut(ODD_KEYS, range(len(ODD_KEYS)))
    state.commit(1)
    found = sql(f"SELECT * FROM {name}_committed")
    assert sorted(value for _, value in found) == list(range(len(ODD_KEYS)))
    texts = {value: key for key, value in found}
    for number, fields in enumerate(ODD_KEYS):
        if len(fields) == 1 and isinstance(fields[0], str) and "\0" not in fields[0]:
            assert texts[number] == fields[0]


def test_states_share_a_table_and_know_only_their_own_rows(
    opened: Open, sql: SQL, name: str
) -> None:
    first = opened(table=f"{name}all", prefix=f"{name}a")
    second = opened(table=f"{name}all", prefix=f"{name}ab")
    committed(first, record(1), cat=1)
    assert second.backing.occupant() is None
    committed(second, record(1), cat=10, b=5)
    assert sql(f'SELECT count(*) FROM "{name}all"') == [(3,)]
    assert sql(f"SELECT * FROM {name}a_committed") == [("cat", 1)]
    assert sorted(first.entries()) == [(b"cat", 1)]
    assert sorted(second.entries()) == [(b"b", 5), (b"cat", 10)]
    with pytest.raises(CorruptStateError, match="something other than a state that keeps .*bigint"):
        committed(opened(table=f"{name}all", prefix=f"{name}c", values="bigint"), record(1), cat=1)


@pytest.mark.parametrize(
    "prefix",
    ['we"ird', "50%s", "%(name)s", "{table}", "'; DROP TABLE trident_states; --", "Größe", "$1"],
)
def test_any_name_is_only_a_name(postgres_server: Served, sql: SQL, prefix: str) -> None:
    import psycopg

    own = f"{prefix}{uuid4().hex[:8]}"
    factory: Any = state_from_url(f"{postgres_server.url}?values=bigint").named(own)
    with closing(factory.makeState()) as state:
        committed(state, record(1), cat=1)
        committed(state, record(2), cat=1)
        assert state.entries() == [(b"cat", 2)]
        assert own in state.backing.prefixes() or len(state.backing.prefixes()) == 20
    view = psycopg.sql.Identifier(f"{own}_committed")
    assert sql(psycopg.sql.SQL("SELECT * FROM {}").format(view)) == [("cat", 2)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("prefix=", "prefix '' can't name a table"),
        ("prefix=trident_states", "can't name a table"),
        (f"prefix={'é' * 27}", "allowed are 1 to 53 bytes"),
        ("prefix=a%00b", "without U\\+0000"),
        ("table=trident_states", "table 'trident_states' or columns .* can't be names"),
        ("columns=word", "not at least two different names"),
        ("columns=a,a", "not at least two different names"),
        ("columns=a,", "can't be names"),
        ("columns=a:time,b", "a type that is unknown; a field of a key may be string, date"),
        ("columns=a,b:long", "a type that is unknown"),
        ("values=int", "values 'int' is unknown; there are: json, bigint, double"),
        ("timeout=0", "timeout 0.0 is not above 0"),
        ("password=secret", "unknown option 'password'"),
    ],
)
def test_a_url_that_can_not_be_is_an_error(options: str, text: str) -> None:
    with pytest.raises(StateURLError, match=text):
        state_from_url(f"postgresql://me:hush@db/shop?{options}")


def test_a_url_with_a_folder_for_a_database_is_an_error() -> None:
    with pytest.raises(StateURLError, match="the name of a database"):
        state_from_url("postgresql://db/shop/counts")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://one/shop", "one:5432/shop"),
        ("postgresql://one,two:5433/shop", "one:5432,two:5433/shop"),
        ("postgresql:///shop?service=main", "service main/shop"),
        ("postgresql:///shop", "its default host/shop"),
    ],
)
def test_a_place_is_named_by_what_is_told_of_it(url: str, place: str) -> None:
    store: Any = state_from_url(url).store
    assert store.identity == ("postgresql", place, "state")
    assert store.open().where == f"postgresql at {place}"


def test_settings_are_handed_to_libpq_as_they_are() -> None:
    tls = "sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/me.pem&sslkey=/me.key"
    url = f"postgresql://me:hush@one,two/shop?{tls}&service=s&target_session_attrs=read-write"
    store: Any = state_from_url(url).store
    assert dict(pickle.loads(pickle.dumps(store))._server.settings) == {
        **{"dbname": "shop", "user": "me", "password": "hush", "host": "one,two"},
        **{"port": "5432,5432", "service": "s", "target_session_attrs": "read-write"},
        **{"sslmode": "verify-full", "sslrootcert": "/ca.pem"},
        **{"sslcert": "/me.pem", "sslkey": "/me.key"},
    }
    assert "hush" not in repr(store) + repr(store._server) + str(store.open().where)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "transactional"},
        {"values": "bigint"},
        {"table": "elsewhere"},
        {"serializer": "pickle"},
    ],
)
def test_a_state_that_is_kept_otherwise_is_refused_to_readers_and_writers(
    opened: Open, options: dict[str, str]
) -> None:
    committed(opened(), record(1), cat=1)
    other = opened(**options)
    for use in (other.control.read, lambda: other.multiGet([("cat",)])):
        with pytest.raises(CorruptStateError, match="it keeps opaque json in .*was opened for"):
            use()


@pytest.mark.parametrize(
    "taken",
    [
        "CREATE TABLE {name} (id int)",
        "CREATE VIEW {name} AS SELECT 1",
        "CREATE TABLE {name}_committed (id int)",
    ],
)
def test_what_is_not_a_state_is_left_alone(opened: Open, sql: SQL, name: str, taken: str) -> None:
    sql(taken.format(name=name))
    state = opened()
    with pytest.raises(CorruptStateError, match="something other|something else"):
        committed(state, record(1), cat=1)
    assert sql("SELECT FROM trident_states WHERE name = %s", name) == []


def test_a_table_that_is_gone_is_no_empty_state(opened: Open, sql: SQL, name: str) -> None:
    state = opened()
    committed(state, record(1), cat=1)
    sql(f"DROP TABLE {name} CASCADE")
    for use in (
        lambda: state.multiGet([("cat",)]),
        state.entries,
        lambda: counted(state, record(2), cat=1),
    ):
        with pytest.raises(CorruptStateError, match="it is missing, but trident_states says"):
            use()


def test_a_database_in_another_encoding_is_refused(postgres_server: Served, sql: SQL) -> None:
    database = f"latin{uuid4().hex}"
    sql(f"CREATE DATABASE {database} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    place = postgres_server.url.rpartition("/")[0]
    with (
        closing(state_from_url(f"{place}/{database}").makeState()) as state,
        pytest.raises(CorruptStateError, match="its texts are in LATIN1"),
    ):
        committed(state, record(1), cat=1)


def test_many_who_begin_at_once_make_one_state(opened: Open, name: str) -> None:
    states = [opened() for _ in range(6)]
    barrier, failed = threading.Barrier(len(states)), []

    def begin(state: StoredMap) -> None:
        barrier.wait()
        try:
            state.backing.multiPut([b"cat"], [OpaqueValue(1, 0, 1, None)])
        except StateError as error:
            failed.append(error)

    threads = [threading.Thread(target=begin, args=[state]) for state in states]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(states[0].backing.entries()) == 1


def lands_late(opened: Open, sql: SQL, name: str) -> bool:
    """Hold up a write that has passed the fence; return whether the next attempt begins, and the
    write is stored nevertheless."""
    late: Any = opened().backing
    late.multiPut([b"cat"], [OpaqueValue(1, 0, 1, None)])
    late.putControl(record(2).encode(), None)
    sql("BEGIN")
    sql(f"UPDATE {name} SET txid = txid")
    stored: list[bool] = []

    def write() -> None:
        stored.append(late.multiPutFenced([b"cat"], [OpaqueValue(2, 0, 2, 1)], record(2).encode()))

    writing = threading.Thread(target=write)
    writing.start()
    wait_until(lambda: sql("SELECT FROM pg_locks WHERE NOT granted"))
    try:
        began = opened(timeout="0.5").backing.putControl(record(2, 1).encode(), record(2).encode())
    except StateUnavailableError:
        began = False
    sql("COMMIT")
    writing.join()
    return began and stored == [True]


def test_the_next_attempt_begins_when_what_has_passed_the_fence_is_written(
    opened: Open, sql: SQL, name: str
) -> None:
    assert not lands_late(opened, sql, name)


def test_without_the_lock_on_the_control_record_a_write_lands_late(
    opened: Open, sql: SQL, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlocked = statements._FENCED.replace("FOR SHARE", "")
    monkeypatch.setattr(statements, "_FENCED", unlocked)
    assert lands_late(opened, sql, name)


def test_numbers_that_are_no_longs_are_refused_with_their_type(opened: Open) -> None:
    state = opened(values="bigint")
    for value, found in ((1.5, "a float"), (True, "a bool"), ("1", "a str"), ([], "a list")):
        state.beginCommit(1)
        state.multiPut([("cat",)], [value])
        with pytest.raises(SerializationError, match=f"found {found}.*keeps bigint"):
            state.commit(1)


def test_doubles_are_added_as_python_adds_them(opened: Open, sql: SQL, name: str) -> None:
    state = opened(values="double", columns="word,sum")
    amounts = [0.1, 0.2, 1e300, -0.0, 5e-324]
    for txid, amount in enumerate(amounts, start=1):
        committed(state, record(txid), cat=amount, **{f"w{txid}": amount})
    assert state.multiGet([("cat",), ("w4",)]) == [sum(amounts), -0.0]
    assert sql(f"SELECT sum FROM {name}_committed WHERE word = 'w5'") == [(5e-324,)]
    for value in (nan, inf, 1):
        state.beginCommit(record(9))
        state.multiFold([b"dog"], [value], Sum())
        with pytest.raises(SerializationError, match="keeps double precision"):
            state.commit(record(9))
    committed(state, record(6), big=1.7e308)
    with pytest.raises(SerializationError, match="a sum that is not finite"):
        committed(state, record(7), big=1.7e308)


@pytest.mark.parametrize(("start", "amount"), [(2**63 - 1, 1), (-(2**63), -1), (1, 2**63 - 1)])
def test_a_sum_over_64_bits_names_the_key_and_changes_nothing(
    opened: Open, start: int, amount: int
) -> None:
    state = opened(values="bigint")
    committed(state, record(1), cat=start, dog=2**63 - 1, cow=-(2**63))
    with pytest.raises(LongOverflowError, match=r"key \('cat',\): -?922337203685477580") as failed:
        counted(state, record(2), dog=0, cow=0, cat=amount)
    assert failed.value.value == start + amount
    assert state.backing.multiGet([b"dog"]) == [OpaqueValue(1, 0, 2**63 - 1, None)]


def test_a_later_entry_stops_an_amount_and_the_whole_statement(opened: Open) -> None:
    state = opened(values="bigint")
    state.backing.multiPut([b"dog"], [OpaqueValue(5, 1, 3, 2)])
    state.backing.putControl(record(4).encode(), None)
    own = record(4)
    with pytest.raises(StaleBatchError, match="already holds attempt 1 of batch 5"):
        state.backing.multiAddFenced([b"cat", b"dog"], [1, 1], own.token, {}, own.encode())
    assert state.backing.multiGet([b"cat", b"dog"]) == [None, OpaqueValue(5, 1, 3, 2)]


@pytest.mark.parametrize("seed", range(3))
def test_the_database_adds_as_a_state_in_memory_does_whatever_fails(
    opened: Open, seed: int
) -> None:
    """Random batches, of which some come again, with other words."""
    chance = random.Random(seed)
    both: Sequence[StoredMap] = (
        opened(values="bigint"),
        MemoryMapState.Factory().makeState(),  # type: ignore[assignment]
    )
    retried: dict[int, int] = {}
    for txid in range(1, 30):
        attempts = chance.choice([1, 1, 2, 3])
        for attempt in range(attempts):
            own = ControlRecord("log", Token(txid, attempt), txid - 1, dict(retried))
            keys = [b"w%d" % number for number in chance.sample(range(40), 15)]
            amounts = [chance.randrange(-5, 100) for _ in keys]
            for state in both:
                state.control.begin(own)
                state.beginCommit(own)
                state.multiFold(keys[:10], amounts[:10], Count())
                state.multiFold(keys[5:], amounts[5:], Count())
                state.commit(own)
        if attempts > 1:
            retried[txid] = attempts - 1
        for state in both:
            assert state.control.announce(state.control.ready(own))
        words = [(f"w{number}",) for number in range(40)]
        assert both[0].multiGet(words) == both[1].multiGet(words)


def test_every_call_is_one_round_trip(
    opened: Open, sql: SQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trident.backends.postgres import connections
    from trident.backends.postgres.driver import driver

    trips = []
    wait = connections._connection_class(driver()).wait

    def count(self: Any, *arguments: Any, **options: Any) -> Any:
        trips.append(1)
        return wait(self, *arguments, **options)

    monkeypatch.setattr(connections._connection_class(driver()), "wait", count)
    for values, of_task in (("json", 2), ("bigint", 1)):
        state = opened(values=values, prefix=f"t{uuid4().hex}")
        committed(state, record(1), cat=1)
        own = record(2)
        keys = [b"w%d" % number for number in range(1000)]
        trips.clear()
        state.control.begin(own)
        assert len(trips) == 1, "the announcement before is all that can be there"
        state.beginCommit(own)
        state.multiFold(keys, [1] * 1000, Count())
        state.commit(own)
        assert len(trips) == 1 + of_task
        ready = state.control.ready(own)
        assert len(trips) == 1 + of_task + 2, "the record, and which server it is"
        state.control.announce(ready)
        assert len(trips) == 1 + of_task + 3
        trips.clear()
        assert state.multiGet([("w1",)] * 5) == [1] * 5
        assert len(trips) == 5, "one transaction: the record, the keys, the record again"


def test_a_reader_waits_for_the_next_committed_batch(opened: Open) -> None:
    state, reader = opened(), opened()
    with pytest.raises(NoStateError):
        wait_committed(reader, after=0)
    committed(state, record(1), cat=1)
    assert wait_committed(reader, after=0) == 1
    with pytest.raises(TimeoutError, match="no batch after 1 was committed within 0.1 s"):
        wait_committed(reader, after=1, timeout=0.1)
    heard: list[int] = []
    waiting = threading.Thread(target=lambda: heard.append(wait_committed(reader, after=1)))
    waiting.start()
    counted(state, record(2), cat=1)
    assert waiting.is_alive(), "it is not committed"
    state.control.announce(state.control.ready(record(2)))
    waiting.join(timeout=30)
    assert heard == [2]
    with pytest.raises(StateError, match="takes a state in PostgreSQL"):
        wait_committed(MemoryMapState.Factory().makeState(), after=0)  # type: ignore[arg-type]


def test_a_reader_hears_of_a_state_that_was_built_anew_and_has_fewer_batches(
    postgres_server: Served, name: str
) -> None:
    factory: Any = state_from_url(f"{postgres_server.url}?prefix={name}")
    with closing(factory.makeState()) as old, closing(factory.at(f"{name}2").makeState()) as new:
        for txid in range(1, 4):
            committed(old, record(txid), cat=1)
        committed(new, replace(record(1), log_id="log2"), cat=3)
    with closing(factory.makeState()) as reader:
        assert wait_committed(reader, after=1) == 3
        swap_states([(factory, f"{name}2")])
        assert wait_committed(reader, after=3) == 1


def test_whoever_waits_is_told_and_need_not_look(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trident.backends.postgres import backing_map

    monkeypatch.setattr(backing_map, "_LOOK_SECONDS", 1000.0)
    state, reader = opened(), opened()
    committed(state, record(1), cat=1)
    thread = threading.Thread(target=wait_committed, args=[reader, 1, 30.0])
    thread.start()
    committed(state, record(2), cat=1)
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_a_reader_behind_a_pooler_which_keeps_notifications_back_looks(pgbouncer: Served) -> None:
    url = f"{pgbouncer.url}?prefix=t{uuid4().hex}"
    state: Any = state_from_url(url).makeState()
    committed(state, record(1), cat=1)
    thread = threading.Thread(target=wait_committed, args=[state_from_url(url).makeState(), 1])
    thread.start()
    committed(state, record(2), cat=1)
    thread.join(timeout=30)
    assert not thread.is_alive()


def test_json_is_kept_as_the_text_that_it_is(opened: Open, sql: SQL, name: str) -> None:
    state = opened()
    values = [1e300, -0.0, 1.0, "\0", {"b": 1, "a": 2}]
    keys = [(number,) for number in range(len(values))]
    state.beginCommit(1)
    state.multiPut(keys, values)
    state.commit(1)
    assert repr(state.multiGet(keys)) == repr(values)
    [(text,)] = sql(f"SELECT value::text FROM {name}_committed WHERE key = '[4]'")
    assert json.loads(text) == {"a": 2, "b": 1}


def test_more_than_a_statement_takes_is_written_in_parts_under_the_fence(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trident.backends.postgres import backing_map

    monkeypatch.setattr(backing_map, "_AT_ONCE", 10_000)
    backing: Any = opened().backing
    keys = [b"w%d" % number for number in range(1000)]
    values = [OpaqueValue(1, 0, number, None) for number in range(1000)]
    backing.multiPut(keys, values)
    assert backing.multiGet(keys) == values
    backing.putControl(record(2).encode(), None)
    newer = [OpaqueValue(2, 0, 0, number) for number in range(1000)]
    assert backing.multiPutFenced(keys, newer, record(1).encode()) is False
    assert backing.multiGet(keys) == values
    assert backing.multiPutFenced(keys, newer, record(2).encode()) is True
    assert backing.multiGet(keys) == newer


def test_keys_that_no_index_takes_are_found_and_listed(opened: Open) -> None:
    long = [(random.Random(number).randbytes(4000).hex(),) for number in range(3)]
    for options in ({}, {"table": "long-keys", "prefix": f"t{uuid4().hex}"}):
        state = opened(**options)
        state.beginCommit(1)
        state.multiPut([*long, ("short",)], [0, 1, 2, 3])
        state.commit(1)
        assert state.multiGet(long) == [0, 1, 2]
        stored = dict(state.entries())
        assert [stored[encode_key(key)] for key in long] == [0, 1, 2]


def test_other_values_than_json_are_kept_as_bytes(opened: Open, sql: SQL, name: str) -> None:
    state = opened(serializer="pickle")
    for txid, value in ((1, {(1, 2)}), (2, b"bytes")):
        state.beginCommit(txid)
        state.multiPut([("cat",)], [value])
        state.commit(txid)
        assert state.multiGet([("cat",)]) == [value]
    [(found,)] = sql(f"SELECT value FROM {name}_committed")
    assert pickle.loads(found) == b"bytes"


def test_a_connection_that_the_server_has_ended_meanwhile_is_not_used(
    opened: Open, sql: SQL
) -> None:
    state = opened()
    committed(state, record(1), cat=1)
    backing: Any = state.backing
    with backing._server.lend() as connection:
        process = connection.info.backend_pid
    assert sql("SELECT pg_terminate_backend(%s, 30000)", process) == [(True,)]
    assert state.multiGet([("cat",)]) == [1]


FORKING = """
import os, sys
from trident.backends import state_from_url
state = state_from_url(sys.argv[1]).makeState()
assert state.multiGet([("cat",)]) == [1]
child = os.fork()
for _ in range(50):
    assert state.multiGet([("cat",)]) == [1]
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert state.multiGet([("cat",)]) == [1]
"""


def test_a_forked_child_has_connections_of_its_own(
    opened: Open, postgres_server: Served, name: str
) -> None:
    committed(opened(), record(1), cat=1)
    url = f"{postgres_server.url}?prefix={name}"
    command = [sys.executable, "-W", "error", "-c", FORKING, url]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


ZONED = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
TYPED: dict[str, tuple[str, list[Any]]] = {
    "date": ("date", [date(2026, 1, 2), date.min, date.max]),
    "timestamp": (
        "timestamp with time zone",
        [ZONED, datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, 23, 59, 59, 999999, UTC)],
    ),
    "timestamp_ntz": ("timestamp without time zone", [datetime.min, datetime.max]),
    "boolean": ("boolean", [True, False]),
    "decimal": ("numeric", [Decimal("1.5"), Decimal(0), Decimal("-1E+37"), Decimal("1E-38")]),
    "long": ("bigint", [0, -(2**63), 2**63 - 1]),
    "double": ("double precision", [0.5, 1e300, 5e-324, inf, -inf, 3.0]),
    "string": ("text", ["", "Perú", "[1]", "true", "2026-01-02"]),
}


@pytest.mark.parametrize("kind", TYPED)
def test_a_field_of_a_key_has_its_type_in_the_view(
    opened: Open, sql: SQL, name: str, kind: str
) -> None:
    told, fields = TYPED[kind]
    for shape, columns in (("one", f"field:{kind}"), ("two", f"text,field:{kind}")):
        prefix = f"{name}{shape}"
        state = opened(prefix=prefix, columns=f"{columns},value", values="bigint")
        text = "a" if kind == "string" else "a\0b"
        keys = [(each,) if shape == "one" else (text, each) for each in [*fields, None]]
        state.beginCommit(1)
        state.multiPut(keys, range(len(keys)))
        state.commit(1)
        found = sql(f"SELECT field, value FROM {prefix}_committed ORDER BY value")
        assert [field for field, _ in found] == [*fields, None]
        assert {type(field) for field, _ in found} == {type(fields[0]), type(None)}
        [(column,)] = sql(f"SELECT DISTINCT pg_typeof(field)::text FROM {prefix}_committed")
        assert column == told


def test_a_key_of_nan_is_one_in_the_view(opened: Open, sql: SQL, name: str) -> None:
    state = opened(columns="field:double,value")
    state.beginCommit(1)
    state.multiPut([(nan,)], [1])
    state.commit(1)
    assert sql(f"SELECT value FROM {name}_committed WHERE field = 'NaN'") == [(1,)]


@pytest.mark.parametrize("kind", [kind for kind in TYPED if kind != "string"])
def test_no_key_breaks_a_column_of_another_type(
    opened: Open, sql: SQL, name: str, kind: str
) -> None:
    state = opened(columns=f"field:{kind},value")
    keys = [*ODD_KEYS, ({"$date": "tomorrow"},), (["x"],), ("\0[",), (1, "\\u0000", "\0")]
    keys = list({encode_key(key): key for key in keys}.values())
    state.beginCommit(1)
    state.multiPut(keys, range(len(keys)))
    state.commit(1)
    assert len(sql(f"SELECT field, value FROM {name}_committed")) == len(keys)


def test_a_view_that_was_made_without_types_stays_as_it_is(
    opened: Open, sql: SQL, name: str
) -> None:
    committed(opened(columns="day,count"), record(1), cat=1)
    state = opened(columns="day:date,count")
    committed(state, record(2), cat=1)
    assert sql(f"SELECT day, count FROM {name}_committed") == [("cat", 2)]


def test_a_topology_tells_the_types_of_its_keys(
    postgres_server: Served, sql: SQL, name: str
) -> None:
    schema = "day date, at timestamp, local timestamp_ntz, paid boolean, price decimal(9,2), n long"
    columns = "day,at,local,paid:string,price,n,count"
    row = (date(2026, 1, 2), ZONED, datetime(2026, 1, 2), True, Decimal("1.50"), 3)
    topology = TridentTopology()
    stream = topology.newStream("rows", FixedBatchSpout(schema, 2, row, (None,) * 6))
    url = f"{postgres_server.url}?prefix={name}&columns={columns}"
    stream.groupBy(Fields.of(schema).names).persistentAggregate(url, Count(), "count")
    with topology.start(trigger="available") as run:
        run.awaitTermination()
    found = sql(f"SELECT * FROM {name}_committed ORDER BY day NULLS LAST")
    assert found == [(*row[:3], "true", *row[4:], 1), (*(None,) * 6, 1)]
