"""State in a SQLite file: what it keeps, what it refuses, and what it says then."""

from __future__ import annotations

import errno
import math
import os
import pickle
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from trident.backends import sqlite
from trident.backends.sqlite import SQLiteStore, connections, tables
from trident.backends.sqlite.backing_map import SQLiteMap
from trident.states import OpaqueValue, StateType, Token, TransactionalValue
from trident.states.control import Control, ControlRecord
from trident.states.errors import (
    CorruptStateError,
    LongOverflowError,
    LostStateError,
    NoStateError,
    SerializationError,
    StaleBatchError,
    StateUnavailableError,
)
from trident.states.maps.factory import OpaqueMap
from trident.states.serializers import PickleSerializer
from trident.states.testing.checks import following

Opener = Callable[..., SQLiteMap]


def record(txid: int, attempt: int = 0, retried: dict[int, int] | None = None) -> ControlRecord:
    return ControlRecord("a1", Token(txid, attempt), txid - 1, retried or {})


def begun(
    store: SQLiteMap, txid: int, attempt: int = 0, retried: dict[int, int] | None = None
) -> ControlRecord:
    made = record(txid, attempt, retried)
    assert store.putControl(made.encode(), store.getControl())
    return made


def add(store: SQLiteMap, amounts: dict[bytes, Any], made: ControlRecord) -> bool:
    keys, values = list(amounts), list(amounts.values())
    return store.multiAddFenced(keys, values, made.token, made.retried, made.encode())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "counts.db"


@pytest.fixture
def opened(path: Path) -> Iterator[Opener]:
    """Opens maps of one file, and closes them at the end."""
    maps: list[SQLiteMap] = []

    def open_map(**options: Any) -> SQLiteMap:
        maps.append(SQLiteStore(str(path), **{"prefix": "words", **options}).open())
        return maps[-1]

    yield open_map
    for store in maps:
        store.close()


VALUES = {
    "int": 5,
    "largest int": 2**63 - 1,
    "smallest int": -(2**63),
    "bool": True,
    "false": False,
    "float": 1.5,
    "whole float": 2.0,
    "text": "häuser",
    "digits": "12",
    "text with NUL": "a\0b",
    "empty text": "",
    "list": [1, "a", None],
    "dict": {"a": [True]},
    "infinity": math.inf,
    "bytes": b"x",
    "tuple": (1, (2.5,)),
    "date": date(2026, 1, 2),
    "moment": datetime(2026, 1, 2, 3, tzinfo=UTC),
    "decimal": Decimal("1.50"),
    "like a tag": {"$date": "2026-01-02"},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "before strict"])
def test_values_come_back_equal_and_of_the_same_type(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, value: Any, strict: bool
) -> None:
    if not strict:
        monkeypatch.setattr(tables, "_ANY", "")
        monkeypatch.setattr(tables, "_OPTIONS", "WITHOUT ROWID")
    store = opened()
    store.multiPut([b"k"], [OpaqueValue(1, 0, value, None)])
    [found] = store.multiGet([b"k"])
    assert found == OpaqueValue(1, 0, value, None)
    assert type(found.curr) is type(value)


@pytest.mark.parametrize("value", [math.nan, -0.0, [math.nan], [-0.0]], ids=repr)
def test_what_is_no_number_comes_back_and_so_does_the_sign_of_zero(
    opened: Opener, value: Any
) -> None:
    store = opened()
    store.multiPut([b"k"], [OpaqueValue(1, 0, value, value)])
    [found] = store.multiGet([b"k"])
    assert repr(found) == repr(OpaqueValue(1, 0, value, value))


@pytest.mark.parametrize("value", [2**64, {1}, bytearray(b"x"), "\ud800"])
def test_values_that_would_change_are_refused_and_nothing_is_written(
    opened: Opener, value: Any
) -> None:
    store = opened()
    with pytest.raises(SerializationError):
        store.multiPut([b"a", b"k"], [OpaqueValue(1, 0, 1, None), OpaqueValue(1, 0, value, None)])
    assert store.multiGet([b"a", b"k"]) == [None, None]


@pytest.mark.parametrize("value", [math.inf, 2**70, (1, {2}), b"x", "\ud800"])
def test_pickle_keeps_what_json_refuses(opened: Opener, value: Any) -> None:
    store = opened(serializer=PickleSerializer())
    store.multiPut([b"k"], [OpaqueValue(1, 0, value, 3)])
    assert store.multiGet([b"k"]) == [OpaqueValue(1, 0, value, 3)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (StateType.OPAQUE, OpaqueValue(3, 1, "new", None)),
        (StateType.OPAQUE, OpaqueValue(3, 1, None, 4.5)),
        (StateType.TRANSACTIONAL, TransactionalValue(3, [True])),
        (StateType.NON_TRANSACTIONAL, 7),
    ],
)
def test_each_kind_keeps_its_values(opened: Opener, kind: StateType, value: Any) -> None:
    store = opened(kind=kind)
    store.multiPut([b"k", b"l"], [value, value])
    assert store.multiGet([b"l", b"none", b"k"]) == [value, None, value]
    assert sorted(store.entries()) == [(b"k", value), (b"l", value)]


@pytest.mark.parametrize(
    "keys",
    [
        [b"b", b"a", b"b", b""],
        [b'\0["a",1]', b"a\0b", b"plain"],
        ["ключ".encode(), b'"quoted\\"', b"\xff\xfe"],
    ],
    ids=["plain and repeated", "with NUL", "odd"],
)
def test_answers_come_in_the_order_of_the_keys(opened: Opener, keys: list[bytes]) -> None:
    store = opened()
    values = {key: OpaqueValue(1, 0, number, None) for number, key in enumerate(keys)}
    store.multiPut(list(values), list(values.values()))
    assert store.multiGet([*keys, b"missing"]) == [*map(values.get, keys), None]
    assert store.multiGet([]) == []


def test_a_column_shows_its_type_to_any_sqlite_client(opened: Opener, path: Path) -> None:
    store = opened()
    store.multiPut(
        [b"a", b"b", b"c"],
        [OpaqueValue(2, 1, 5, 1.5), OpaqueValue(2, 0, "x", None), OpaqueValue(2, 0, True, [1])],
    )
    store.close()
    client = sqlite3.connect(path)
    rows = client.execute(
        "SELECT key, txid, attempt, curr, prev FROM words ORDER BY key"
    ).fetchall()
    client.close()
    assert rows == [("a", 2, 1, 5, 1.5), ("b", 2, 0, "x", None), ("c", 2, 0, b"true", b"[1]")]


def test_nothing_is_created_by_reading(opened: Opener, path: Path) -> None:
    store = opened()
    with store.snapshot():
        assert store.getControl() is None
        assert store.multiGet([b"a"]) == [None]
        assert store.entries() == []
    assert not path.exists()


def test_a_write_with_another_fence_is_refused(opened: Opener) -> None:
    store = opened()
    old = begun(store, 1)
    assert add(store, {b"a": 1}, old)
    begun(store, 1, attempt=1)
    assert not add(store, {b"a": 5}, old)
    assert not store.multiPutFenced([b"a"], [OpaqueValue(1, 0, 9, None)], old.encode())
    assert not store.multiRemoveFenced([b"a"], old.encode())
    assert store.multiGet([b"a"]) == [OpaqueValue(1, 0, 1, None)]


def test_without_a_control_record_every_fenced_write_is_refused(opened: Opener) -> None:
    store = opened()
    assert not add(store, {b"a": 1}, record(1))
    assert store.multiGet([b"a"]) == [None]


def test_removal_is_physical(opened: Opener) -> None:
    store = opened()
    own = begun(store, 1)
    store.multiPutFenced([b"a", b"b"], [OpaqueValue(1, 0, 1, None)] * 2, own.encode())
    assert store.multiRemoveFenced([b"a"], own.encode())
    assert store.entries() == [(b"b", OpaqueValue(1, 0, 1, None))]


# The opaque read table, as the database applies it itself.


@pytest.mark.parametrize(
    ("stored", "before"),
    [
        (OpaqueValue(7, 0, 50, 40), 50),  # committed
        (OpaqueValue(6, 0, 50, 40), 40),  # left by a failed attempt
        (OpaqueValue(6, 2, 50, 40), 50),  # the attempt that was committed
        (OpaqueValue(7, 1, 50, 40), 40),
        (OpaqueValue(5, 0, 50, 40), 40),  # burnt
        (OpaqueValue(9, 0, 50, 40), 40),  # an earlier attempt of this batch
        (OpaqueValue(9, 1, 50, 40), 40),  # this attempt, when its task runs twice
        (OpaqueValue(9, 0, 50, None), None),
        (OpaqueValue(7, 0, None, 40), None),  # removed
        (None, None),
    ],
)
def test_adding_starts_from_the_committed_value(
    opened: Opener, stored: OpaqueValue | None, before: int | None
) -> None:
    store = opened()
    if stored is not None:
        store.multiPut([b"k"], [stored])
    own = begun(store, 9, 1, {6: 2, 5: -1})
    assert add(store, {b"k": 3, b"other": 1}, own)
    after = OpaqueValue(9, 1, 3 if before is None else before + 3, before)
    assert store.multiGet([b"k", b"other"]) == [after, OpaqueValue(9, 1, 1, None)]


@pytest.mark.parametrize("stored", [OpaqueValue(9, 2, 5, 4), OpaqueValue(10, 0, 5, 4)])
def test_adding_to_the_value_of_a_later_attempt_is_stale_and_writes_nothing(
    opened: Opener, stored: OpaqueValue
) -> None:
    store = opened()
    store.multiPut([b"k"], [stored])
    own = begun(store, 9, 1)
    with pytest.raises(StaleBatchError) as raised:
        add(store, {b"a": 1, b"k": 3}, own)
    assert raised.value.args == (Token(9, 1), Token(*stored[:2]))
    assert store.multiGet([b"a", b"k"]) == [None, stored]


@pytest.mark.parametrize(
    ("before", "amount"), [(2**63 - 1, 1), (-(2**63), -1), (2**62, 2**62), (-(2**62) - 1, -(2**62))]
)
def test_an_overflow_of_64_bits_is_an_error_and_writes_nothing(
    opened: Opener, before: int, amount: int
) -> None:
    store = opened()
    store.multiPut([b"k"], [OpaqueValue(1, 0, before, None)])
    own = begun(store, 2)
    with pytest.raises(LongOverflowError, match=f"'k',.*{before + amount}"):
        add(store, {b"a": 1, b"k": amount}, own)
    assert store.multiGet([b"a", b"k"]) == [None, OpaqueValue(1, 0, before, None)]
    assert add(store, {b"a": 1}, own)


@pytest.mark.parametrize(
    ("before", "amount"),
    [
        (2**63 - 2, 1),
        (-(2**63) + 1, -1),
        (1e300, 1e300),
        (1e308, 1e308),
        (math.inf, 1),
        (1, -math.inf),
        (Decimal("1.50"), 1),
        (2**62, 0.5),
        (1, -0.5),
        (2.0, 1),
        (True, 1),
        (0, 0),
    ],
)
def test_adding_makes_what_python_makes(opened: Opener, before: Any, amount: Any) -> None:
    store = opened()
    store.multiPut([b"k"], [OpaqueValue(1, 0, before, None)])
    add(store, {b"k": amount}, begun(store, 2))
    [found] = store.multiGet([b"k"])
    assert found == OpaqueValue(2, 0, before + amount, before)
    assert type(found.curr) is type(before + amount)


@pytest.mark.parametrize(
    ("before", "amount", "problem", "said"),
    [
        ("12", 1, CorruptStateError, r"key \('k',\) .*'12' is a str, and numbers are added"),
        ([1], 1, CorruptStateError, r"key \('k',\) .*\[1\] is a list, and numbers are added"),
        (b"x", 1, CorruptStateError, r"b'x' is a bytes, and numbers are added"),
        (date(2026, 1, 2), 1, CorruptStateError, "is a date, and numbers are added"),
    ],
)
def test_adding_to_what_is_no_number_is_an_error(
    opened: Opener, before: Any, amount: Any, problem: type[Exception], said: str
) -> None:
    store = opened()
    store.multiPut([b"k"], [OpaqueValue(1, 0, before, None)])
    own = begun(store, 2)
    with pytest.raises(problem, match=said):
        add(store, {b"k": amount}, own)
    assert store.multiGet([b"k"]) == [OpaqueValue(1, 0, before, None)]


def test_thousands_of_exceptions_are_known_to_the_statement(opened: Opener) -> None:
    store = opened()
    retried = dict.fromkeys(range(1, 5000), 1)
    store.multiPut([b"a", b"b"], [OpaqueValue(4_999, 1, 8, 5), OpaqueValue(4_998, 0, 8, 5)])
    add(store, {b"a": 1, b"b": 1}, begun(store, 5_000, 0, retried))
    assert [value.curr for value in store.multiGet([b"a", b"b"])] == [9, 6]


@pytest.mark.slow
def test_a_batch_of_100_000_keys_is_added_put_and_read(opened: Opener) -> None:
    store = opened()
    keys = [f"word{number}".encode() for number in range(100_000)]
    amounts = list(range(100_000))
    own = begun(store, 1)
    assert store.multiAddFenced(keys, amounts, own.token, own.retried, own.encode())
    values = store.multiGet(keys)
    assert [value.curr for value in values] == amounts
    doubled = [OpaqueValue(1, 0, 2 * value.curr, None) for value in values]
    assert store.multiPutFenced(keys, doubled, own.encode())
    assert store.multiGet(keys) == doubled


# Processes, threads, files.


def test_the_map_pickles_in_use_and_closes_twice(opened: Opener) -> None:
    store = opened()
    begun(store, 1)
    copy = pickle.loads(pickle.dumps(store))
    assert copy.getControl() == record(1).encode()
    copy.close()
    copy.close()
    store.close()
    assert store.getControl() == record(1).encode()


def test_a_snapshot_does_not_move(opened: Opener) -> None:
    store = opened()
    first = begun(store, 1)
    add(store, {b"k": 1}, first)
    with store.snapshot():
        assert store.getControl() == first.encode()
        add(store, {b"k": 5}, begun(store, 2))
        assert store.getControl() == first.encode()
        assert store.multiGet([b"k"]) == [OpaqueValue(1, 0, 1, None)]
    assert store.multiGet([b"k"]) == [OpaqueValue(2, 0, 6, 1)]


def test_threads_read_while_one_writes(opened: Opener) -> None:
    """Both keys are written by every batch, so every moment shows them equal."""
    store = opened()
    add(store, {b"a": 1, b"b": 1}, begun(store, 1))
    done = threading.Event()
    seen: list[list[OpaqueValue]] = []
    reading = threading.Barrier(3)

    def read() -> None:
        reading.wait(30)
        while not done.is_set():
            seen.append(store.multiGet([b"a", b"b"]))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    reading.wait(30)
    for txid in count(2):
        add(store, {b"a": 1, b"b": 1}, begun(store, txid))
        if txid >= 50 and len(seen) >= 50:
            break
    done.set()
    for reader in readers:
        reader.join(30)
    assert all(a == b for a, b in seen)


def test_states_of_one_file_are_apart(opened: Opener) -> None:
    words, lines = opened(), opened(prefix="the lines'\" of text")
    add(words, {b"k": 1}, begun(words, 1))
    add(lines, {b"k": 2}, begun(lines, 7))
    assert words.multiGet([b"k"]) == [OpaqueValue(1, 0, 1, None)]
    assert lines.multiGet([b"k"]) == [OpaqueValue(7, 0, 2, None)]
    assert words.getControl() == record(1).encode()


def test_a_prefix_that_differs_in_case_is_the_same_state(opened: Opener, path: Path) -> None:
    begun(opened(), 1)
    assert opened(prefix="WORDS").getControl() == record(1).encode()
    identities = {SQLiteStore(str(path), name).identity for name in ("words", "Words")}
    assert len(identities) == 1


def test_identity_sees_through_links_and_relative_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    relative, linked = SQLiteStore("a.db", "w"), SQLiteStore(str(tmp_path / "link" / "a.db"), "w")
    assert relative.identity == linked.identity == ("sqlite", str(tmp_path / "a.db"), "w")
    assert SQLiteStore("a.db").named("w").identity == relative.identity
    assert relative.named("other") is relative


@pytest.mark.parametrize("kind", [StateType.OPAQUE, StateType.TRANSACTIONAL])
@pytest.mark.parametrize("prefix", ["excluded", "retried", "stored", "wanted", "main", "temp"])
def test_a_prefix_that_our_own_sql_uses_is_a_table_like_any(
    opened: Opener, prefix: str, kind: StateType
) -> None:
    store = opened(prefix=prefix, kind=kind)
    for txid in (1, 2):
        value = OpaqueValue(txid, 0, txid, None) if kind is StateType.OPAQUE else (txid, txid)
        assert store.multiPutFenced([b"a"], [value], begun(store, txid).encode())
        assert store.multiGet([b"a"]) == [value]
    if kind is StateType.OPAQUE:
        assert add(store, {b"a": 5}, begun(store, 3))
        assert store.multiGet([b"a"]) == [OpaqueValue(3, 0, 7, 2)]


@pytest.mark.parametrize("prefix", ["", "sqlite_words", "Trident_States", "json_each", "a\0b"])
def test_a_prefix_that_names_no_table_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="can't name a table"):
        SQLiteStore("a.db", prefix)


@pytest.mark.parametrize("path", ["", ":memory:", "counts-\ud800.db"])
def test_a_path_that_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="MemoryMapState"):
        SQLiteStore(path)


# Bad files, each said clearly, with the path and what to do.


def test_a_file_that_is_no_database_is_named(opened: Opener, path: Path) -> None:
    path.write_bytes(b"word,count\n" * 1000)
    with pytest.raises(CorruptStateError, match=r"counts\.db.*not a database.*Give the path"):
        begun(opened(), 1)
    assert path.read_bytes() == b"word,count\n" * 1000


def test_a_damaged_database_is_named(opened: Opener, path: Path) -> None:
    store = opened()
    own = begun(store, 1)
    keys = [f"word{number}".encode() for number in range(20_000)]
    store.multiAddFenced(keys, [1] * len(keys), own.token, own.retried, own.encode())
    store.close()
    with path.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom(path.stat().st_size - 9 * 4096))
    with pytest.raises(CorruptStateError, match=r"counts\.db.*malformed.*Restore it from a backup"):
        store.multiGet(keys)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "no" / "counts.db")).open()
    with pytest.raises(StateUnavailableError, match=r"no/counts\.db.*Its folder must exist"):
        begun(store, 1)


def test_an_unwritable_place_is_named() -> None:
    store = SQLiteStore("/proc/counts.db").open()
    with pytest.raises(StateUnavailableError, match=r"/proc/counts\.db.*able to write"):
        begun(store, 1)


def test_a_state_of_another_kind_is_named(opened: Opener) -> None:
    begun(opened(), 1)
    other = opened(kind=StateType.TRANSACTIONAL)
    problem = "keeps opaque values, and was opened for transactional ones.*Open it as that kind"
    with pytest.raises(CorruptStateError, match=problem):
        other.multiGet([b"k"])
    with pytest.raises(CorruptStateError, match=problem):
        other.multiPut([b"k"], [TransactionalValue(1, 1)])


def test_a_table_of_somebody_else_is_left_alone(opened: Opener, path: Path) -> None:
    client = sqlite3.connect(path)
    client.execute("CREATE TABLE Words (word TEXT)")
    client.close()
    with pytest.raises(CorruptStateError, match="other than a state.*another name"):
        begun(opened(), 1)


def test_a_file_of_another_encoding_is_named(opened: Opener, path: Path) -> None:
    client = sqlite3.connect(path)
    client.execute("PRAGMA encoding = 'UTF-16le'")
    client.execute("CREATE TABLE somebody_elses (word TEXT)")
    client.close()
    with pytest.raises(CorruptStateError, match=r"counts\.db.*UTF-16le.*Give a file of UTF-8"):
        begun(opened(), 1)


def test_a_dropped_table_is_named(opened: Opener, path: Path) -> None:
    store = opened()
    own = begun(store, 1)
    client = sqlite3.connect(path)
    client.execute("DROP TABLE words")
    client.close()
    with pytest.raises(CorruptStateError, match="no such table: main.words.*Something else"):
        add(store, {b"k": 1}, own)


def test_a_writer_elsewhere_is_waited_for_and_then_named(opened: Opener, path: Path) -> None:
    store = opened(patience=0.05)
    own = begun(store, 1)
    client = sqlite3.connect(path, isolation_level=None)
    client.execute("BEGIN IMMEDIATE")
    with pytest.raises(StateUnavailableError, match="locked.*Another process is writing"):
        add(store, {b"k": 1}, own)
    client.execute("ROLLBACK")
    client.close()
    assert add(store, {b"k": 1}, own)


def test_a_file_removed_under_a_running_state_is_lost(opened: Opener, path: Path) -> None:
    store = opened()
    control = Control(store)
    control.begin(record(1))
    add(store, {b"k": 1}, record(1))
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(StateUnavailableError, match="write-ahead log: No such file"):
        control.ready(record(1))
    with pytest.raises(LostStateError):
        control.begin(record(2), following(control, record(2), Token(1, 0)))


def test_an_interrupt_right_after_a_begin_leaves_the_map_usable(opened: Opener) -> None:
    store = opened()
    own = begun(store, 1)
    with suppress(KeyboardInterrupt), store._connections.writer() as connection:
        connection.execute("BEGIN IMMEDIATE")
        raise KeyboardInterrupt
    assert add(store, {b"k": 1}, own)
    assert store.multiGet([b"k"]) == [OpaqueValue(1, 0, 1, None)]


def test_readers_find_the_file_that_took_anothers_place(opened: Opener, path: Path) -> None:
    store, reader = opened(), opened()
    add(store, {b"k": 1}, begun(store, 1))
    with reader.snapshot():
        assert reader.multiGet([b"k"]) == [OpaqueValue(1, 0, 1, None)]
    store.close()
    path.with_name("copy.db").write_bytes(path.read_bytes())
    path.with_name("copy.db").replace(path)
    add(store, {b"k": 1}, begun(store, 2))
    assert reader.multiGet([b"k"]) == [OpaqueValue(2, 0, 2, 1)]
    store.close()
    path.unlink()
    assert reader.multiGet([b"k"]) == [None]


def test_a_batch_is_forced_to_the_disk_once_and_only_when_something_was_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link names the file; its log lies beside the file."""
    link = path.parent / "link.db"
    link.symlink_to(path)
    store = SQLiteStore(str(link), "words").open()
    control = Control(store)
    control.begin(record(1))
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(inode(file)))
    for txid in range(2, 5):
        control.begin(record(txid))
        add(store, {b"k": 1}, record(txid))
        ready = control.ready(record(txid))
        store.flush()
        control.announce(ready)
    assert synced == [inode(f"{path}-wal")] * 3
    store.close()


def inode(file: int | str) -> int:
    return os.stat(file).st_ino


def test_a_log_that_cannot_be_forced_to_the_disk_fails_the_attempt(
    opened: Opener, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    store = opened()
    control = Control(store)
    control.begin(record(1))
    with monkeypatch.context() as failing:
        failing.setattr(os, "fdatasync", full)
        with pytest.raises(StateUnavailableError, match="write-ahead log: Input/output error"):
            control.ready(record(1))
    store.flush()  # is tried again


def test_a_mistyped_prefix_says_which_states_the_file_has(opened: Opener, path: Path) -> None:
    begun(opened(), 1)
    opened(prefix="not begun").multiPut([b"k"], [OpaqueValue(1, 0, 1, None)])
    state = OpaqueMap(opened(prefix="wrods"))
    with pytest.raises(NoStateError, match=f"'wrods' in {path}.* the prefixes: 'words'. Give it"):
        state.multiGet([("k",)])


def test_a_file_that_is_not_there_has_no_state(path: Path) -> None:
    with pytest.raises(NoStateError, match=f"in {path}, or it has not begun. No other state"):
        sqlite.opaque(path).makeState().multiGet([("k",)])
    assert not path.exists()


def test_rows_are_written_in_the_order_of_their_keys() -> None:
    keys = [b"z", "é".encode(), b"a"]
    in_order = map(list, tables.sort_by_key(keys, [1, 2, 3]))
    assert list(in_order) == [["a", "z", "é"], [3, 1, 2]]
    assert list(map(list, tables.sort_by_key([b"\xff", b"a"]))) == [["a", b"\xff"]]
    assert list(map(list, tables.sort_by_key([], []))) == [[], []]


def test_the_log_becomes_as_large_as_the_file_before_it_is_copied_there(
    opened: Opener, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_SHORTEST_LOG", 2**16)
    store = opened()
    keys = [b"k%05d" % number for number in range(20_000)]
    store.multiPut(keys, [OpaqueValue(1, 0, 1, None)] * len(keys))
    store.incarnation()  # as each batch does
    copied = path.read_bytes()
    one_a_page = keys[::400]

    def write_pages(txid: int) -> None:
        store.multiPut(one_a_page, [OpaqueValue(txid, 0, txid, 1)] * len(one_a_page))

    write_pages(2)
    assert len(one_a_page) * 4096 > 2**16
    assert path.read_bytes() == copied
    for txid in range(3, 3 + len(copied) // len(one_a_page) // 4096):
        write_pages(txid)
    assert path.read_bytes() != copied
