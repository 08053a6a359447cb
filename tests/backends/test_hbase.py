"""State in HBase: what a cell's timestamp does, whose table it is, and what is refused."""

from __future__ import annotations

import pickle
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import pytest

from tests.states.test_parts import KEYS, read
from tests.states.test_parts import write as write_batch
from trident.backends import hbase
from trident.backends.hbase import HBaseStore, connections, family
from trident.backends.hbase.backing_map import HBaseMap
from trident.backends.state_url import StateURL
from trident.states import StateType
from trident.states.control import Control, ControlRecord
from trident.states.errors import (
    NoStateError,
    SerializationError,
    StateError,
    StateUnavailableError,
    StateURLError,
    UnownedStateError,
)
from trident.states.keys import CONTROL_KEY
from trident.states.maps.factory import MapStateFactory, OpaqueMap
from trident.states.values import Token
from trident.testing.servers.hbase import HBaseServer
from trident.testing.servers.process import wait_until
from trident.testing.servers.promised import Served

COLUMN = b"state:words"
NOWHERE = HBaseStore("127.0.0.1", 1, prefix="words")
"""A store for what must be refused before anything is sent."""


def version(txid: int, attempt: int = 0) -> int:
    return 2**62 | txid << 12 | attempt


def record(txid: int, attempt: int = 0) -> ControlRecord:
    return ControlRecord("a1", Token(txid, attempt), txid - 1)


@pytest.fixture
def store(hbase_server: Served) -> HBaseStore:
    """A column of its own in a table that these tests share."""
    [(host, port)] = re.findall(r"//(.+):(\d+)", hbase_server.url)
    return HBaseStore(host, int(port), table="tests", prefix=uuid4().hex, timeout=60)


@pytest.fixture
def own_table(store: HBaseStore) -> HBaseStore:
    """A column in a table that no other test uses, and that isn't there yet."""
    return replace(store, table=f"t{uuid4().hex}", prefix="words")


@pytest.fixture
def client(store: HBaseStore) -> Iterator[Any]:
    """A Thrift client of somebody else's."""
    gateway = store.open()._family.gateway
    with gateway.lend() as lent:
        yield lent.client


def put(client: Any, store: HBaseStore, row: bytes, value: bytes, timestamp: int) -> None:
    """Write a cell as another program does."""
    from Hbase_thrift import BatchMutation, Mutation

    column = f"{store.family}:{store.prefix}".encode()
    put = BatchMutation(row, [Mutation(False, column, value)])
    client.mutateRowsTs(store.table.encode(), [put], timestamp, {})


def create(client: Any, store: HBaseStore, **options: Any) -> None:
    from Hbase_thrift import ColumnDescriptor

    described = ColumnDescriptor(name=f"{store.family}:".encode(), **options)
    client.createTable(store.table.encode(), [described])


def flush(client: Any, store: HBaseStore) -> None:
    """Have the table's memory written to files, which closing it does."""
    client.disableTable(store.table.encode())
    client.enableTable(store.table.encode())


def compact(client: Any, store: HBaseStore, *writes: Callable[[], None]) -> None:
    """Make files, one before and one after each write, which are as many as are then made one."""
    table, column = store.table.encode(), f"{store.family}:{store.prefix}".encode()
    # A deletion of long ago, whose trace goes when all files are made one.
    put(client, store, b"deleted", b"old", 100)
    client.deleteAllTs(table, b"deleted", column, 100, {})
    flush(client, store)
    for write in writes:
        write()
        flush(client, store)

    def done() -> bool:
        put(client, store, b"deleted", b"older", 50)
        return store.open().multiGet([b"deleted"]) == [b"older"]

    wait_until(done)


def together(work: Callable[[int], None], number: int = 4) -> None:
    """Run `work` in several threads at the same moment."""
    gate = Barrier(number)

    def run(own: int) -> None:
        gate.wait()
        work(own)

    threads = [Thread(target=run, args=[own]) for own in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# Which cell shows.


def test_of_one_version_written_twice_the_later_shows(store: HBaseStore) -> None:
    backing = store.open()
    for value in (b"first", b"second"):
        backing.multiPutAt([b"k"], [value], version(7, 1))
        assert backing.multiGet([b"k"]) == [value]


def test_a_late_writer_is_hidden_in_memory_in_files_and_after_a_compaction(
    own_table: HBaseStore, client: Any
) -> None:
    backing = own_table.open()
    keys = [b"late in memory", b"late in a file", b"late after all"]
    newest = [b"newest %d" % number for number in range(3)]
    backing.multiPutAt(keys, newest, version(5, 1))
    backing.multiPutAt(keys[:1], [b"late"], version(5))
    assert backing.multiGet(keys) == newest
    compact(
        client,
        own_table,
        lambda: backing.multiPutAt(keys[1:2], [b"late"], version(4, 9)),
        lambda: backing.multiPutAt(keys[1:2], [b"later"], version(5)),
    )
    assert backing.multiGet(keys) == newest
    backing.multiPutAt(keys, [b"late"] * 3, version(5))
    assert backing.multiGet(keys) == newest
    flush(client, own_table)
    assert backing.multiGet(keys) == newest


def test_a_tie_over_a_flush_goes_to_the_later_too(own_table: HBaseStore, client: Any) -> None:
    backing = own_table.open()
    backing.multiPutAt([b"k"], [b"first"], version(5))
    flush(client, own_table)
    backing.multiPutAt([b"k"], [b"second"], version(5))
    assert backing.multiGet([b"k"]) == [b"second"]
    flush(client, own_table)
    assert backing.multiGet([b"k"]) == [b"second"]


def test_a_deletion_by_hand_changes_nothing(store: HBaseStore, client: Any) -> None:
    backing, table = store.open(), store.table.encode()
    backing.multiPutAt([b"k"], [b"kept"], version(5))
    client.deleteAll(table, b"k", f"state:{store.prefix}".encode(), {})
    client.deleteAllRow(table, b"k", {})
    assert backing.multiGet([b"k"]) == [b"kept"]


def test_a_deletion_at_a_version_would_hide_later_writes_until_some_compaction(
    own_table: HBaseStore, client: Any
) -> None:
    """Why nothing is ever deleted: what shows would depend on what the servers do when."""
    backing, table = own_table.open(), own_table.table.encode()
    backing.multiPutAt([b"k"], [b"one"], version(5))
    client.deleteAllTs(table, b"k", COLUMN, version(7), {})
    backing.multiPutAt([b"k"], [b"two"], version(6))
    assert backing.multiGet([b"k"]) == [None]
    backing.multiPutAt([b"k"], [b"three"], version(7, 1))
    assert backing.multiGet([b"k"]) == [b"three"]
    client.deleteAllTs(table, b"k", COLUMN, version(9), {})
    compact(
        client,
        own_table,
        lambda: backing.multiPutAt([b"other"], [b"one"], version(5)),
        lambda: backing.multiPutAt([b"other"], [b"two"], version(6)),
    )
    assert backing.multiGet([b"k"]) == [None]
    backing.multiPutAt([b"k"], [b"late"], version(6))
    assert backing.multiGet([b"k"]) == [b"late"]


def test_a_plain_put_shows_whatever_was_there(store: HBaseStore, client: Any) -> None:
    backing = store.open()
    backing.multiPutAt([b"versioned"], [b"old"], version(5))
    put(client, store, b"by clock", b"old", 2**63 - 1)
    keys = [b"versioned", b"by clock", b"absent"]
    backing.multiPut(keys, [b"new"] * 3)
    assert backing.multiGet(keys) == [b"new"] * 3
    backing.multiPutAt(keys, [b"next"] * 3, version(6))
    assert backing.multiGet(keys) == [b"next"] * 3


# The control record.


def test_every_replacement_of_the_record_shows_at_once(store: HBaseStore) -> None:
    backing = store.open()
    before = None
    for number in range(200):
        new = b"%d" % number
        assert backing.putControl(new, before)
        assert backing.getControl() == new
        before = new


def test_a_record_from_a_clock_that_ran_ahead_is_replaced(store: HBaseStore, client: Any) -> None:
    backing = store.open()
    backing.putControl(b"one", None)
    put(client, store, CONTROL_KEY, b"ahead", 2**61)
    assert backing.putControl(b"two", b"ahead")
    assert backing.getControl() == b"two"


def test_of_many_who_replace_the_record_one_does(store: HBaseStore) -> None:
    store.open().putControl(b"first", None)
    won: list[int] = []

    def replace_it(own: int) -> None:
        if store.open().putControl(b"%d" % own, b"first"):
            won.append(own)

    together(replace_it)
    assert len(won) == 1
    assert store.open().getControl() == b"%d" % won[0]


def test_the_server_is_known_by_when_it_was_started(store: HBaseStore) -> None:
    backing = store.open()
    backing.multiGet([b"k"])
    found = backing.incarnation()
    assert re.fullmatch(r"\[\(b'[^']+:\d+', b.+\)\]", found), found
    assert store.open().incarnation() == found


# The table.


def test_states_share_a_table(store: HBaseStore) -> None:
    prefixes = ["", "a", "a:b", "a b", "caf\u00e9", "A"]
    own = uuid4().hex.encode()
    maps = [replace(store, prefix=prefix).open() for prefix in prefixes]
    for number, backing in enumerate(maps):
        backing.multiPutAt([own], [b"%d" % number], version(1))
    assert [backing.multiGet([own]) for backing in maps] == [[b"%d" % n] for n in range(6)]


def test_each_state_has_a_record_of_its_own(store: HBaseStore) -> None:
    one, other = store.open(), replace(store, prefix=uuid4().hex).open()
    assert one.putControl(b"one", None)
    assert other.getControl() is None
    assert other.putControl(b"other", None)
    assert one.getControl() == b"one"


def test_a_missing_table_is_made_by_one_of_many(own_table: HBaseStore) -> None:
    found: list[Any] = []

    def write(own: int) -> None:
        backing = own_table.open()
        backing.multiPutAt([b"%d" % own], [b"%d" % own], version(1))
        found.append(backing.multiGet([b"%d" % own]))

    together(write)
    assert sorted(found) == [[b"%d" % own] for own in range(4)]


def test_a_table_that_is_made_keeps_one_version_and_is_quick_to_read(
    own_table: HBaseStore, client: Any
) -> None:
    own_table.open().multiGet([b"k"])
    [family] = client.getColumnDescriptors(own_table.table.encode()).values()
    assert (family.maxVersions, family.timeToLive) == (1, 2**31 - 1)
    assert (family.bloomFilterType, family.blockCacheEnabled) == (b"ROW", True)


def test_a_table_of_more_versions_is_taken_as_it_is(own_table: HBaseStore, client: Any) -> None:
    create(client, own_table, maxVersions=5)
    backing = own_table.open()
    for txid in (3, 2, 4, 1):
        backing.multiPutAt([b"k"], [b"%d" % txid], version(txid))
    assert backing.multiGet([b"k"]) == [b"4"]


def test_a_family_that_forgets_is_refused(own_table: HBaseStore, client: Any) -> None:
    create(client, own_table, timeToLive=86_400)
    with pytest.raises(StateError, match="forgets what is 86400 s old.*TTL => 'FOREVER'") as raised:
        own_table.open().multiPutAt([b"k"], [b"v"], version(1))
    assert f"hbase at {own_table.host}:{own_table.port}" in str(raised.value)
    assert own_table.table in str(raised.value)


def test_a_missing_family_is_an_error_that_says_how_to_add_it(
    own_table: HBaseStore, client: Any
) -> None:
    create(client, own_table)
    with pytest.raises(
        StateError, match="no column family f; it has: state.*alter 't.*NAME => 'f'"
    ):
        replace(own_table, family="f").open().multiGet([b"k"])


def test_a_table_that_is_dropped_fails_an_attempt_and_is_made_anew(
    own_table: HBaseStore, client: Any
) -> None:
    backing = own_table.open()
    backing.putControl(b"one", None)
    client.disableTable(own_table.table.encode())
    client.deleteTable(own_table.table.encode())
    with pytest.raises(StateUnavailableError, match=f"table {own_table.table}: "):
        backing.getControl()
    assert backing.getControl() is None


def test_a_disabled_table_is_an_error_that_says_how_to_enable_it(
    own_table: HBaseStore, client: Any
) -> None:
    backing = own_table.open()
    backing.multiGet([b"k"])
    client.disableTable(own_table.table.encode())
    with pytest.raises(StateUnavailableError, match="is disabled. .* enable 't"):
        backing.multiGet([b"k"])
    client.enableTable(own_table.table.encode())
    assert backing.multiGet([b"k"]) == [None]


def test_a_missing_namespace_is_an_error_that_says_so(own_table: HBaseStore) -> None:
    with pytest.raises(StateUnavailableError, match="create_namespace"):
        replace(own_table, table="nowhere:words").open().multiGet([b"k"])


# Keys and values.


def test_the_longest_key_is_found_in_a_table_that_nobody_looked_up(own_table: HBaseStore) -> None:
    longest = b"k" * (32_767 - len(own_table.table) - 16)
    backing = own_table.open()
    assert backing.multiGet([longest]) == [None]
    backing.multiPutAt([longest], [b"v"], version(1))
    assert backing.multiGet([longest]) == [b"v"]


@pytest.mark.parametrize(
    "call",
    [
        lambda backing, key: backing.multiGet([b"k", key]),
        lambda backing, key: backing.multiPut([b"k", key], [b"1", b"2"]),
        lambda backing, key: backing.multiPutAt([b"k", key], [b"1", b"2"], version(1)),
    ],
    ids=["multiGet", "multiPut", "multiPutAt"],
)
def test_a_key_that_is_too_long_is_refused_before_anything_is_sent(
    call: Callable[[HBaseMap, bytes], object],
) -> None:
    too_long = b"k" * (32_767 - len("trident") - 8)
    with pytest.raises(SerializationError, match="32,752 bytes.* at most 32,744"):
        call(NOWHERE.open(), too_long)


def test_the_empty_key_has_a_row(store: HBaseStore, client: Any) -> None:
    backing = store.open()
    backing.multiPutAt([b"", b"\0[]"], [b"empty", b"none"], version(1))
    assert backing.multiGet([b"\0[]", b""]) == [b"none", b"empty"]
    rows = client.getRow(store.table.encode(), b'\0[""]', {})
    assert rows[0].columns[f"state:{store.prefix}".encode()].value == b"empty"


def test_values_of_a_megabyte_go_in_several_messages(store: HBaseStore) -> None:
    backing = store.open()
    keys = [b"%d" % number for number in range(20)]
    values = [b"%d" % (number % 10) * 2**20 for number in range(20)]
    backing.multiPutAt(keys, values, version(1))
    assert backing.multiGet(keys[::-1]) == values[::-1]


def test_a_value_that_the_servers_refuse_stops_the_run(store: HBaseStore) -> None:
    with pytest.raises(StateError, match="KeyValue size too large.*maxsize") as raised:
        store.open().multiPutAt([b"k"], [b"v" * 11 * 2**20], version(1))
    assert not isinstance(raised.value, StateUnavailableError)


def test_nothing_is_sent_for_no_keys() -> None:
    backing = NOWHERE.open()
    assert backing.multiGet([]) == []
    backing.multiPut([], [])
    backing.multiPutAt([], [], version(1))


# What Storm wrote.


@pytest.mark.parametrize(
    ("kind", "stored", "before", "after"),
    [
        (hbase.opaque, b"[7,5,4]", 5, b"[8,6,5]"),
        (hbase.opaque, b"[7,5,null]", 5, b"[8,6,5]"),
        (hbase.transactional, b"[7,5]", 5, b"[8,6]"),
        (hbase.nonTransactional, b"5", 5, b"6"),
    ],
)
def test_state_of_storm_is_taken_over_and_stays_readable_by_it(
    own_table: HBaseStore,
    client: Any,
    kind: Callable[..., Any],
    stored: bytes,
    before: int,
    after: bytes,
) -> None:
    create(client, own_table)
    put(client, own_table, b"dog", stored, 2**63 - 1)
    state = kind(
        own_table.host, own_table.port, table=own_table.table, prefix="words", timeout=60
    ).makeState()
    state.control.create(ControlRecord("a1", Token(7, 0), 7))
    begun = record(8)
    state.control.begin(begun)
    assert state.multiGet([("dog",), ("cat",)]) == [before, None]
    state.beginCommit(begun)
    state.multiPut([("dog",)], [before + 1])
    state.commit(begun)
    assert state.control.announce(state.control.ready(begun))
    assert state.multiGet([("dog",)]) == [before + 1]
    [row] = client.getRow(own_table.table.encode(), b"dog", {})
    assert row.columns[COLUMN].value == after
    state.close()


# The configuration.


def test_a_map_pickles_in_use_and_is_used_after_close(store: HBaseStore) -> None:
    backing = store.open()
    backing.multiPutAt([b"k"], [b"v"], version(1))
    copy = pickle.loads(pickle.dumps(backing))
    backing.close()
    assert copy.multiGet([b"k"]) == [b"v"]
    copy.close()
    copy.close()
    assert backing.multiGet([b"k"]) == [b"v"]


def test_opening_connects_to_nothing() -> None:
    pickled = pickle.dumps(hbase.opaque("127.0.0.1", 1, prefix="words"))
    pickle.loads(pickled).makeState().close()


def test_the_state_s_name_is_the_default_qualifier() -> None:
    factory = hbase.opaque("h").named("words")
    assert factory.identity == ("hbase", "h:9090/trident", "state:words")
    assert hbase.opaque("h", prefix="").named("words").identity[2] == "state:"
    assert factory.named("others") == factory


def test_one_table_has_one_identity() -> None:
    assert HBaseStore("h", table="default:t").identity == HBaseStore("h", table="t").identity


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"table": ""}, "table '' is no name"),
        ({"table": "a b"}, "table 'a b' is no name"),
        ({"table": ".hidden"}, "table '.hidden' is no name"),
        ({"table": "a:b:c"}, "table 'a:b:c' is no name"),
        ({"family": ""}, "family '' is no name"),
        ({"family": "a:b"}, "family 'a:b' is no name"),
        ({"transport": "http"}, "there are: buffered, framed"),
        ({"protocol": "json"}, "there are: binary, compact"),
        ({"timeout": 0}, "not above 0 seconds"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        HBaseStore(**options)


@pytest.mark.parametrize(
    ("url", "store"),
    [
        ("hbase://h", HBaseStore("h")),
        ("hbase:", HBaseStore()),
        ("hbase://h:1/", HBaseStore("h", 1)),
        ("hbase://[::1]:1/t", HBaseStore("::1", 1, "t")),
        ("hbase://h/ns:t/f?prefix=", HBaseStore("h", table="ns:t", family="f", prefix="")),
        (
            "hbase://h/t/f?timeout=2.5&transport=framed&protocol=compact&prefix=a%20b",
            HBaseStore("h", 9090, "t", "f", "a b", 2.5, "framed", "compact"),
        ),
    ],
)
def test_a_url_names_the_store(url: str, store: HBaseStore) -> None:
    assert hbase.from_url(StateURL.parse(url)).store == store


def test_a_url_names_the_kind_and_the_limits() -> None:
    url = "hbase://h/t?kind=transactional&max_get=5"
    factory = hbase.from_url(StateURL.parse(url))
    assert (factory.kind, factory.max_get) == (StateType.TRANSACTIONAL, 5)


@pytest.mark.parametrize(
    "url",
    [
        "hbase://a,b/t",
        "hbase://h/t/f/g",
        "hbase://h//f",
        "hbase://me:secret@h/t",
        "hbase://h?tabel=t",
    ],
)
def test_a_url_of_something_else_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(StateURLError, match="^hbase: ") as raised:
        hbase.from_url(StateURL.parse(url))
    assert "secret" not in str(raised.value)


def test_modules_keep_nothing_of_maps_but_connections_and_checked_tables(
    store: HBaseStore,
) -> None:
    backing = store.open()
    backing.multiGet([b"k"])
    assert backing._family in family._prepared
    connections.pool.close_idle()
    assert backing.multiGet([b"k"]) == [None]


def test_a_record_begun_here_is_found_by_another(store: HBaseStore) -> None:
    Control(store.open()).begin(record(1))
    assert Control(store.open()).read() == record(1)


def test_a_mistyped_prefix_says_which_states_the_family_has(own_table: HBaseStore) -> None:
    Control(own_table.open()).begin(record(1))
    state = OpaqueMap(replace(own_table, prefix="wrods").open())
    with pytest.raises(NoStateError, match="'wrods'.* the prefixes: 'words'. Give it"):
        state.multiGet([("k",)])


def test_what_storm_wrote_is_noticed_beside_another_state(
    own_table: HBaseStore, client: Any
) -> None:
    Control(own_table.open()).begin(record(1))
    storms = replace(own_table, prefix="storm").open()
    storms.multiPut([b"dog"], [b"[17,5,4]"])
    with pytest.raises(UnownedStateError, match="the row b'dog'"):
        Control(storms).begin(record(1))


def test_each_region_of_a_table_is_read_by_itself(
    own_table: HBaseStore, hbase_server: Served
) -> None:
    if not isinstance(hbase_server, HBaseServer):
        pytest.skip("the gateway makes no table of several regions, and this server isn't ours")
    *run, _, _ = hbase_server.command()
    source = Path(__file__).with_name("SplitTable.java")
    made = [str(source), own_table.table, own_table.family, "k1", "k2,x"]
    subprocess.run([*run, *made], check=True, capture_output=True, timeout=60)
    state = MapStateFactory(own_table).makeMap()
    record = write_batch(state, 1, dict.fromkeys(KEYS, 1))
    parts = state.backing.parts(1)
    found = [[key for key, _ in read(state, record, part)] for part in parts]
    assert sorted(repr(key) for keys in found for key in keys) == sorted(map(repr, KEYS))
    assert [min(keys)[0] for keys in found[1:]] == ["k1", "k20"]
    state.close()
