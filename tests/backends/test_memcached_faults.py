"""Nodes that restart, pause, go away or run full: noticed, and nothing wrong is taken for state."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from pymemcache.client.base import Client

from trident.backends.memcached import MemcachedStore
from trident.backends.memcached.backing_map import MemcachedMap
from trident.backends.memcached.keys import StoredKeys
from trident.states.control import Control, ControlRecord
from trident.states.errors import (
    CorruptStateError,
    FailedException,
    LostStateError,
    StateError,
    StateUnavailableError,
)
from trident.states.keys import CONTROL_KEY
from trident.states.maps.factory import OpaqueMap
from trident.states.testing.checks import following
from trident.states.values import Token
from trident.testing.servers.memcached import MemcachedServer, MemcachedServers
from trident.testing.servers.process import free_port, wait_until

KEYS = [b"word%d" % number for number in range(20)]
ONES = [b"1"] * len(KEYS)


def record(txid: int, attempt: int = 0) -> ControlRecord:
    return ControlRecord("log", Token(txid, attempt), txid - 1)


def address(server: MemcachedServer) -> str:
    return f"{server.host}:{server.port}"


def client_of(server: MemcachedServer) -> closing[Client]:
    return closing(Client((server.host, server.port)))


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[MemcachedServer]]:
    """Two nodes to be hurt."""
    with MemcachedServers(tmp_path) as made:
        yield made.nodes


@pytest.fixture
def words(servers: list[MemcachedServer]) -> MemcachedMap:
    return MemcachedStore(list(map(address, servers)), "words", timeout=0.5).open()


def committed(words: MemcachedMap) -> Control:
    """Begin, write and announce batch 1."""
    control = Control(words, "words")
    control.begin(record(1))
    words.multiPut(KEYS, ONES)
    assert control.announce(control.ready(record(1)))
    return control


# A node that restarts has lost everything


@pytest.mark.parametrize("lost", [[0], [1], [0, 1]])
def test_a_node_that_restarted_between_batches_stops_the_run(
    words: MemcachedMap, servers: list[MemcachedServer], lost: list[int]
) -> None:
    control = committed(words)
    for node in lost:
        servers[node].restart()
    with pytest.raises((LostStateError, CorruptStateError), match="words"):
        control.begin(record(2), following(control, record(2), Token(1, 0)))


def test_a_lost_node_is_named(words: MemcachedMap, servers: list[MemcachedServer]) -> None:
    control = committed(words)
    servers[1].restart()
    with pytest.raises(CorruptStateError) as raised:
        control.begin(record(2), following(control, record(2), Token(1, 0)))
    assert f"{address(servers[1])} (shard 1)" in str(raised.value)
    assert "these have none: 1" in str(raised.value)


@pytest.mark.parametrize("node", [0, 1])
def test_a_node_that_restarts_during_a_batch_is_noticed_before_the_commit(
    words: MemcachedMap, servers: list[MemcachedServer], node: int
) -> None:
    control = committed(words)
    control.begin(record(2), following(control, record(2), Token(1, 0)))
    words.multiPut(KEYS, ONES)
    servers[node].restart()
    with pytest.raises((StateUnavailableError, StateError)):
        control.ready(record(2))


@pytest.mark.parametrize("node", [0, 1])
def test_a_node_that_restarts_before_a_task_writes_refuses_it(
    words: MemcachedMap, servers: list[MemcachedServer], node: int
) -> None:
    committed(words)
    own = record(2)
    counts = OpaqueMap(words)
    counts.control.begin(own, following(counts.control, own, Token(1, 0)))
    counts.beginCommit(own)
    counts.multiPut([("dog",)], [1])
    servers[node].restart()
    with pytest.raises((FailedException, StateError)):
        counts.commit(own)
    assert words.multiGet([b"dog"]) == [None]


@pytest.mark.parametrize("node", [0, 1])
def test_a_restart_is_noticed_even_where_the_record_is_back(
    words: MemcachedMap, servers: list[MemcachedServer], node: int
) -> None:
    control = committed(words)
    control.begin(record(2), following(control, record(2), Token(1, 0)))
    [name] = StoredKeys("words").of([CONTROL_KEY])
    with client_of(servers[node]) as client:
        kept = client.get(name)
    servers[node].restart()
    with client_of(servers[node]) as client:
        client.set(name, kept, noreply=False)
    with pytest.raises(StateUnavailableError, match="restarted"):
        control.ready(record(2))


def test_the_incarnation_does_not_follow_the_clock(
    words: MemcachedMap, servers: list[MemcachedServer]
) -> None:
    seen, times = set(), set()
    with client_of(servers[0]) as client:

        def two_seconds_went_by() -> bool:
            seen.add(words.incarnation())
            times.add(client.stats()[b"time"])
            return len(times) > 2

        wait_until(two_seconds_went_by)
    assert len(seen) == 1


@pytest.mark.parametrize("node", [0, 1])
def test_a_control_record_that_alone_is_gone_is_no_fresh_start(
    words: MemcachedMap, servers: list[MemcachedServer], node: int
) -> None:
    control = committed(words)
    with client_of(servers[node]) as client:
        assert client.delete(StoredKeys("words").of([CONTROL_KEY])[0], noreply=False)
    with pytest.raises((LostStateError, CorruptStateError)):
        control.begin(record(2), following(control, record(2), Token(1, 0)))


def test_what_another_log_left_on_half_the_nodes_is_no_fresh_start(
    words: MemcachedMap, servers: list[MemcachedServer]
) -> None:
    committed(words)
    servers[0].restart()
    with pytest.raises(CorruptStateError, match="emptied only partly"):
        Control(words).begin(ControlRecord("another log", Token(1, 0)))


def test_a_state_whose_first_begin_reached_one_node_only_is_begun_again(
    words: MemcachedMap, servers: list[MemcachedServer]
) -> None:
    control = Control(words)
    control.begin(record(1))
    with client_of(servers[0]) as client:
        assert client.delete(StoredKeys("words").of([CONTROL_KEY])[0], noreply=False)
    control.begin(record(1, 1))
    assert words.getControl() == record(1, 1).encode()


# The list of nodes belongs to the state


@pytest.mark.parametrize("order", [[1, 0], [0], [1], [0, 1, 2]])
def test_another_list_of_nodes_is_refused(
    words: MemcachedMap, servers: list[MemcachedServer], tmp_path: Path, order: list[int]
) -> None:
    committed(words)
    with MemcachedServer(tmp_path / "third") as third:
        nodes = [address([*servers, third][number]) for number in order]
        other = MemcachedStore(nodes, "words").open()
        with pytest.raises(CorruptStateError, match="the same order"):
            Control(other).begin(record(2), following(Control(other), record(2), Token(1, 0)))


def test_what_is_no_control_record_is_refused(
    words: MemcachedMap, servers: list[MemcachedServer]
) -> None:
    with client_of(servers[1]) as client:
        client.set(StoredKeys("words").of([CONTROL_KEY])[0], b"1", noreply=False)
    with pytest.raises(CorruptStateError, match=f"{address(servers[1])} can't be read: b'1'"):
        words.getControl()


def test_no_other_node_stands_in_for_one_that_is_away(
    words: MemcachedMap, servers: list[MemcachedServer]
) -> None:
    words.multiPut(KEYS, ONES)
    servers[1].kill()
    with client_of(servers[0]) as client:
        before = client.stats()[b"curr_items"]
        for _ in range(2):
            with pytest.raises(StateUnavailableError, match=address(servers[1])):
                words.multiPut(KEYS, [b"2"] * len(KEYS))
            with pytest.raises(StateUnavailableError, match=address(servers[1])):
                words.multiGet(KEYS)
        assert client.stats()[b"curr_items"] == before


# Servers that can't be talked to


def test_nobody_there_says_how_to_start_one() -> None:
    port = free_port()
    begun = time.monotonic()
    with pytest.raises(StateUnavailableError) as raised:
        MemcachedStore(f"localhost:{port}").open().getControl()
    assert time.monotonic() - begun < 3
    text = str(pickle.loads(pickle.dumps(raised.value)))
    assert f"memcached at localhost:{port}: it refuses the connection" in text
    assert "apt-get install memcached" in text
    assert f"docker run -d -p {port}:11211 memcached" in text


@pytest.mark.slow
def test_a_host_that_swallows_everything_is_given_up_within_three_seconds() -> None:
    with socket.socket() as listening, socket.socket() as first, socket.socket() as second:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for filler in (first, second):  # those that wait to be accepted take all there is
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
        port = listening.getsockname()[1]
        begun = time.monotonic()
        with pytest.raises(StateUnavailableError, match="no connection within 2 s"):
            MemcachedStore(f"127.0.0.1:{port}").open().getControl()
        assert time.monotonic() - begun < 3


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(StateUnavailableError, match=r"nowhere.invalid:11211: its host is unknown"):
        MemcachedStore("nowhere.invalid").open().getControl()


def test_a_server_of_something_else_is_found_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        store = MemcachedStore(f"127.0.0.1:{listening.getsockname()[1]}").open()
        with pytest.raises(StateUnavailableError, match="does not answer as Memcached"):
            store.getControl()
        thread.join()


@pytest.mark.parametrize("node", [0, 1])
def test_a_paused_node_fails_the_attempt_and_its_late_answers_are_never_read(
    words: MemcachedMap, servers: list[MemcachedServer], node: int
) -> None:
    words.multiPut(KEYS, ONES)
    servers[node].pause()
    problem = f"memcached at {address(servers[node])}: no answer within 0.5 s"
    with pytest.raises(StateUnavailableError, match=problem):
        words.multiGet(KEYS)
    servers[node].resume()
    others = [key + b" other" for key in KEYS]
    assert words.multiGet(others) == [None] * len(others)
    assert words.multiGet(KEYS) == ONES


def test_connections_that_died_while_idle_are_replaced(
    words: MemcachedMap, servers: list[MemcachedServer]
) -> None:
    words.multiPut(KEYS, ONES)
    for server in servers:
        server.restart()
    assert words.multiGet(KEYS) == [None] * len(KEYS)


@contextmanager
def cutting_proxy(server: MemcachedServer, after: int) -> Iterator[int]:
    """Stand between a client and the server; cut off every reply `after` bytes beyond the greeting.

    Yields the port. The connection is cut as soon as the server has said so much.
    """
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)

        def serve() -> None:
            while not stop.is_set():
                with suppress(TimeoutError):
                    connection, _ = listening.accept()
                    with connection, socket.create_connection((server.host, server.port)) as behind:
                        _carry(connection, behind, after)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def _carry(client: socket.socket, server: socket.socket, after: int) -> None:
    client.settimeout(5)
    server.settimeout(5)
    for _ in range(2):  # the version and the settings
        server.sendall(client.recv(2**16))
        said = server.recv(2**16)
        while not said.startswith(b"VERSION") and not said.endswith(b"END\r\n"):
            said += server.recv(2**16)
        client.sendall(said)
    server.sendall(client.recv(2**20))
    said = b""
    while len(said) < after:
        said += server.recv(2**16)
    client.sendall(said[:after])


@pytest.mark.parametrize("after", [0, 1, 30, 100])
def test_a_reply_that_is_cut_fails_the_attempt(
    words: MemcachedMap, servers: list[MemcachedServer], after: int
) -> None:
    direct = MemcachedStore(address(servers[0]), "words").open()
    direct.multiPut(KEYS, ONES)
    with cutting_proxy(servers[0], after) as port:
        proxied = MemcachedStore(f"127.0.0.1:{port}", "words").open()
        with pytest.raises(
            StateUnavailableError, match=f"127.0.0.1:{port}: the connection was cut"
        ):
            proxied.multiGet(KEYS)


def test_a_write_whose_answer_is_cut_is_not_repeated(servers: list[MemcachedServer]) -> None:
    with client_of(servers[0]) as client, cutting_proxy(servers[0], 20) as port:
        proxied = MemcachedStore(f"127.0.0.1:{port}", "words").open()
        with pytest.raises(StateUnavailableError, match="Which writes arrived is unknown"):
            proxied.multiPut(KEYS, ONES)
        # It had all arrived, once.
        assert client.stats()[b"cmd_set"] == len(KEYS)


# A server that is full


def test_a_full_node_refuses_writes_and_keeps_what_it_has(tmp_path: Path) -> None:
    made = MemcachedServer(tmp_path, "-m", "3", "-M")
    with made:
        store = MemcachedStore(address(made)).open()
        store.multiPut([b"dog"], [b"old " * 2000])
        keys = [b"word%d" % number for number in range(2000)]
        with pytest.raises(StateUnavailableError) as raised:
            store.multiPutVersioned(keys, [b"v" * 8000] * 2000, [None] * 2000)
        text = str(raised.value)
        assert f"memcached at {address(made)}: it says 'SERVER_ERROR out of memory" in text
        assert "memcached -m" in text
        [(_, version)] = store.multiGetVersioned([b"dog"])
        with pytest.raises(StateUnavailableError):
            store.multiPutVersioned([b"dog"], [b"new " * 2000], [version])
        assert store.multiGet([b"dog"]) == [b"old " * 2000]


def test_a_node_with_all_the_connections_it_takes_says_so(tmp_path: Path) -> None:
    made = MemcachedServer(tmp_path, "-c", "40", "-t", "1")
    with made:
        held = []
        try:
            for number in (50, 10):
                with suppress(OSError):
                    for _ in range(number):
                        held.append(socket.create_connection((made.host, made.port), 30))
                assert b"many" in held[-1].recv(64)
                # Only when it has answered has it ended the connection that waited for its start.
                held[0].sendall(b"version\r\n")
                assert b"VERSION" in held[0].recv(64)
            with pytest.raises(StateUnavailableError, match="memcached -c"):
                MemcachedStore(address(made)).open().getControl()
        finally:
            for connection in held:
                connection.close()
