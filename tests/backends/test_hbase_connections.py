"""Connections to HBase's Thrift gateway: kept, replaced, and what is said when there is none."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from textwrap import dedent
from uuid import uuid4

import pytest

from tests.backends.hbase_proxy import Proxy
from trident.backends.hbase import HBaseStore, connections
from trident.states.errors import StateUnavailableError
from trident.testing.servers.process import free_port, wait_until
from trident.testing.servers.promised import Served

_VERSION = 2**62
_VALUES = (b"%d" % number for number in count())


@pytest.fixture
def store(hbase_server: Served) -> Iterator[HBaseStore]:
    [(host, port)] = re.findall(r"//(.+):(\d+)", hbase_server.url)
    yield HBaseStore(host, int(port), table="tests", prefix=uuid4().hex, timeout=60)
    connections.pool.close_idle()


@pytest.fixture
def proxy(store: HBaseStore) -> Iterator[Proxy]:
    with Proxy(store.host, store.port) as made:
        yield made
        connections.pool.close_idle()


@pytest.fixture
def behind(store: HBaseStore, proxy: Proxy) -> HBaseStore:
    """The same store by way of the proxy, with a connection that was used."""
    made = replace(store, host=proxy.host, port=proxy.port)
    made.open().multiGet([b"k"])
    return made


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[HBaseStore]:
    """Run a server of one connection, which is no HBase."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(2**16)
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield HBaseStore("127.0.0.1", listener.getsockname()[1], prefix="words", timeout=0.3)
        thread.join()


def written(store: HBaseStore) -> bytes:
    """Write something new at a version of its own, and return it."""
    value = next(_VALUES)
    store.open().multiPutAt([b"k"], [value], _VERSION + int(value))
    return value


# Connections that are there.


def test_maps_of_a_process_share_a_connection(behind: HBaseStore, proxy: Proxy) -> None:
    for _ in range(3):
        backing = behind.open()
        backing.multiPutAt([b"k"], [b"v"], _VERSION)
        assert backing.multiGet([b"k"]) == [b"v"]
        backing.close()
    assert proxy.accepted == 1


def test_threads_have_connections_of_their_own(behind: HBaseStore, proxy: Proxy) -> None:
    proxy.hold()
    threads = [threading.Thread(target=behind.open().multiGet, args=[[b"k"]]) for _ in range(3)]
    before = proxy.requests
    for thread in threads:
        thread.start()
    wait_until(lambda: proxy.requests == before + 3)
    proxy.release()
    for thread in threads:
        thread.join()
    assert proxy.accepted == 3
    behind.open().multiGet([b"k"])
    assert proxy.accepted == 3


def test_a_connection_that_the_server_closed_is_replaced(behind: HBaseStore, proxy: Proxy) -> None:
    proxy.close_connections()
    value = written(behind)
    assert behind.open().multiGet([b"k"]) == [value]
    assert proxy.accepted == 2


def test_a_connection_that_the_server_may_close_soon_is_replaced(
    behind: HBaseStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections.pool, "idle_seconds", 0.0)
    behind.open().multiGet([b"k"])
    assert proxy.accepted == 2


@pytest.mark.parametrize("after", [0, 1, 30])
def test_an_answer_that_is_cut_fails_and_the_next_call_has_a_new_connection(
    behind: HBaseStore, proxy: Proxy, after: int
) -> None:
    value = written(behind)
    proxy.cut_the_next_answer(after)
    before = proxy.requests
    with pytest.raises(StateUnavailableError, match="connection was cut.*gateway's log") as raised:
        behind.open().multiGet([b"k"])
    assert str(raised.value).startswith(f"hbase at 127.0.0.1:{behind.port}: ")
    assert proxy.requests == before + 1
    assert behind.open().multiGet([b"k"]) == [value]
    assert proxy.accepted == 2


def test_a_write_whose_answer_is_cut_is_not_repeated(behind: HBaseStore, proxy: Proxy) -> None:
    proxy.cut_the_next_answer(0)
    before = proxy.requests
    with pytest.raises(StateUnavailableError, match="cut"):
        behind.open().multiPutAt([b"k"], [b"v"], _VERSION)
    assert proxy.requests == before + 1


def test_an_answer_that_comes_too_late_is_nobody_s(
    store: HBaseStore, behind: HBaseStore, proxy: Proxy
) -> None:
    store.open().multiPutAt([b"a", b"b"], [b"1", b"2"], _VERSION)
    hasty = replace(behind, timeout=0.2)
    assert hasty.open().multiGet([b"a"]) == [b"1"]
    proxy.hold()
    with pytest.raises(StateUnavailableError, match="no answer within 0.2 s.*longer timeout"):
        hasty.open().multiGet([b"a"])
    proxy.release()
    assert replace(hasty, timeout=60).open().multiGet([b"b"]) == [b"2"]
    assert hasty.open().multiGet([b"b"]) == [b"2"]


def test_closing_what_is_idle_leaves_what_is_lent(behind: HBaseStore, proxy: Proxy) -> None:
    with behind.open()._family.gateway.lend() as connection:
        connections.pool.close_idle()
        connection.client.getTableNames()
    behind.open().multiGet([b"k"])
    assert proxy.accepted == 1


def test_a_forked_child_leaves_its_parent_s_connection_alone(store: HBaseStore) -> None:
    program = f"""
        import os
        from trident.backends.hbase import HBaseStore
        backing = {store!r}.open()
        backing.multiPutAt([b"k"], [b"parent"], {_VERSION})
        with backing._family.gateway.lend() as connection:
            pass
        child = os.fork()
        if not child:
            backing.multiPutAt([b"k"], [b"child"], {_VERSION + 1})
            with backing._family.gateway.lend() as own:
                assert own is not connection
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert connection.is_quiet()
        assert backing.multiGet([b"k"]) == [b"child"]
        with backing._family.gateway.lend() as again:
            assert again is connection
        """
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-W", "error", "-c", dedent(program)],
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        timeout=60,
    )


# Connections that can't be had.


def test_a_server_that_is_not_there_is_told_at_once_and_how_to_start_one() -> None:
    backing = HBaseStore("127.0.0.1", free_port(), prefix="words").open()
    started = time.monotonic()
    with pytest.raises(StateUnavailableError, match="it refuses.*hbase thrift start.*docker run"):
        backing.multiGet([b"k"])
    assert time.monotonic() - started < 1


@pytest.mark.slow
def test_a_server_that_is_out_of_reach_is_told_within_3_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        # The kernel takes no more connections than these, and answers to no other.
        waiting = [socket.socket() for _ in range(3)]
        for connection in waiting:
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
        started = time.monotonic()
        with pytest.raises(StateUnavailableError, match="no connection within 2 s.*firewall"):
            HBaseStore("127.0.0.1", port, prefix="words").open().multiGet([b"k"])
        assert time.monotonic() - started < 3
        for connection in waiting:
            connection.close()


def test_an_unknown_host_is_told() -> None:
    with pytest.raises(StateUnavailableError, match="^hbase at nowhere.invalid:9090: .*unknown"):
        HBaseStore("nowhere.invalid", prefix="words").open().multiGet([b"k"])


def test_a_server_that_hangs_up_may_speak_another_transport() -> None:
    with (
        answering(lambda connection: None) as store,
        pytest.raises(StateUnavailableError, match='cut.*transport="framed"'),
    ):
        store.open().multiGet([b"k"])


def test_a_server_of_something_else_is_told() -> None:
    with (
        answering(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n")) as store,
        pytest.raises(StateUnavailableError, match="answered with an error .*hbase thrift"),
    ):
        store.open().multiGet([b"k"])


def test_a_server_that_says_nothing_is_told() -> None:
    with (
        answering(lambda connection: connection.recv(1) and None) as store,
        pytest.raises(StateUnavailableError, match="no answer within 0.3 s"),
    ):
        store.open().multiGet([b"k"])


def test_a_missing_driver_is_told_with_the_line_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "happybase", None)
    backing = HBaseStore("127.0.0.1", 1, prefix="words").open()
    with pytest.raises(ImportError, match=r'pip install "trident-spark\[hbase\]"'):
        backing.multiGet([b"k"])
