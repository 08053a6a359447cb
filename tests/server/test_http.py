"""HTTP over real connections: what clients may do to a server."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drpc.asking import PATIENCE, held, until
from tests.server.wire import Wire, everything
from tests.servers.certificates import make_certificates
from trident import (
    Count,
    FeederBatchSpout,
    Function,
    MapGet,
    MemoryMapState,
    Split,
    TridentTopology,
)
from trident.backends import sqlite
from trident.drpc.errors import DRPCUsageError
from trident.server.access import Access
from trident.server.application import Application
from trident.server.asgi import DRPCApp
from trident.server.connection import Connections
from trident.server.functions import Functions
from trident.server.http_protocol import http_protocol
from trident.server.limits import DRPCLimits
from trident.server.routes.drpc import drpc_routes
from trident.server.server import DRPCServer
from trident.states.errors import UsageError

GET = b"GET /drpc/echo/cat HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Echo:
    functions = ("echo",)

    async def execute_async(
        self, function: str, args: str, timeout: Any = None, *, request_id: Any = None
    ) -> str:
        return json.dumps([[args]])


def unconnected(limits: DRPCLimits) -> tuple[Any, Connections]:
    """A connection to an echo whose bytes a test hands over, and all connections."""
    connections = Connections(limits)
    routes = drpc_routes(Functions([Echo()], Access(), limits))
    connection = http_protocol(connections, Application(routes, limits.args))()
    connection.connection_made(Wire())
    return connection, connections


async def fed(parts: list[bytes]) -> bytes:
    """What a connection answers to some bytes."""
    connection, connections = unconnected(DRPCLimits(args=300, head=400))
    wire = connection.transport
    for part in parts:
        connection.data_received(part)
        for _ in range(10):  # as often as an answer to a whole request needs
            await asyncio.sleep(0)
        assert connections.received <= 300
    connection.connection_lost(None)
    assert (len(connections), connections.received) == (0, 0)
    return re.sub(rb"date: [^\r]*\r\n", b"", wire.written)


def echo() -> TridentTopology:
    topology = TridentTopology()
    topology.newDRPCStream("echo").each("args", lambda args: [args], "out").project("out")
    topology.newDRPCStream("long").each("args", lambda n: ["a" * int(n)], "out").project("out")
    return topology


@pytest.fixture(scope="module")
def server() -> Iterator[DRPCServer]:
    """A server that takes little."""
    limits = DRPCLimits(slow=PATIENCE, idle=PATIENCE, args=1000, head=2000)
    with DRPCServer(echo(), port=0, limits=limits) as server:
        yield server


@pytest.fixture(scope="module")
def hasty() -> Iterator[DRPCServer]:
    """A server that waits for nobody."""
    with DRPCServer(echo(), port=0, limits=DRPCLimits(slow=0.2, idle=0.4)) as server:
        yield server


def connected(server: DRPCServer) -> socket.socket:
    assert server.port is not None
    client = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def sent(server: DRPCServer, *parts: bytes) -> bytes:
    with closing(connected(server)) as client:
        for part in parts:
            client.sendall(part)
        return everything(client)


def test_a_connection_answers_one_request_after_the_other(server: DRPCServer) -> None:
    assert server.port is not None
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as client:
        for args in ("a", "b"):
            client.request("POST", "/drpc/echo", args)
            response = client.getresponse()
            assert (response.status, response.read()) == (200, f'[["{args}"]]'.encode())


def test_requests_sent_at_once_are_answered_in_their_order(server: DRPCServer) -> None:
    requests = [b"GET /drpc/echo/%d HTTP/1.1\r\nHost:\r\n\r\n" % number for number in range(300)]
    last = b"GET /drpc/echo/last HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n"
    received = sent(server, b"".join(requests) + last)
    answers = [part.split(b"\r\n\r\n")[1] for part in received.split(b"HTTP/1.1 200 OK")[1:]]
    assert answers == [b'[["%d"]]' % number for number in range(300)] + [b'[["last"]]']


def test_a_body_in_chunks_is_taken(server: DRPCServer) -> None:
    assert sent(server, CHUNKED, b"2\r\nab\r\n1\r\n", b"c\r\n0\r\n\r\n").endswith(b'[["abc"]]')


CHUNKED = (
    b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)


def test_a_trailer_that_never_ends_is_431(server: DRPCServer) -> None:
    with closing(connected(server)) as client:
        client.sendall(CHUNKED + b"1\r\na\r\n0\r\nX: ")
        until(lambda: server.connections.received >= 1)
        client.settimeout(2)
        client.sendall(b"a" * 2001)
        assert everything(client).startswith(b"HTTP/1.1 431 ")


def test_what_follows_the_last_request_has_no_answer(server: DRPCServer) -> None:
    last = b"GET /drpc/echo/a HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n"
    assert sent(server, last + b"garbage\r\n\r\n").count(b"HTTP/1.1 ") == 1


def test_a_body_of_small_chunks_takes_no_more_than_its_bytes() -> None:
    limits = DRPCLimits(slow=PATIENCE, idle=PATIENCE)

    async def taken() -> int:
        connection, _ = unconnected(limits)
        connection.data_received(
            b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunks = b"2\r\nab\r\n" * 10_000
        tracemalloc.start()
        try:
            connection.data_received(chunks)
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        return kept

    assert asyncio.run(taken()) < 2 * 20_000


def test_a_trailer_is_no_header(server: DRPCServer) -> None:
    answer = sent(server, CHUNKED + b"1\r\na\r\n0\r\nX-DRPC-Timeout: none\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_client_that_says_it_will_is_told_to_go_on(server: DRPCServer) -> None:
    head = b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
    with closing(connected(server)) as client:
        client.sendall(head)
        assert client.recv(100).startswith(b"HTTP/1.1 100 Continue")
        client.sendall(b"a")
        assert b"200 OK" in client.recv(1000)


@pytest.mark.parametrize(
    "head",
    [
        b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nContent-Length: 500000\r\n\r\n",
        b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n7a120\r\n",
    ],
)
def test_a_body_over_the_limit_is_413_though_it_is_still_coming(
    server: DRPCServer, head: bytes
) -> None:
    received = sent(server, head, b"a" * 500_000)
    assert received.startswith(b"HTTP/1.1 413 ")
    body = json.loads(received.partition(b"\r\n\r\n")[2])
    assert (body["error"], body["limit"]) == ("ARGUMENTS_TOO_LARGE", 1000)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 3000,
        b"GET / HTTP/1.1\r\nHost:\r\nX: " + b"a" * 3000,
        b"GET / HTTP/1.1\r\nHost:\r\n" + b"X: a\r\n" * 200,
    ],
    ids=["line", "header", "headers"],
)
def test_a_head_that_never_ends_is_431(server: DRPCServer, head: bytes) -> None:
    assert sent(server, head, b"a" * 300_000).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00", b"HELLO\r\n\r\n", b"GET\r\n\r\n"])
def test_what_is_no_http_is_400(server: DRPCServer, garbage: bytes) -> None:
    assert sent(server, garbage).startswith(b"HTTP/1.1 400 ")


def test_a_client_that_sends_a_byte_now_and_then_has_no_more_time(hasty: DRPCServer) -> None:
    with closing(connected(hasty)) as client:
        client.settimeout(0.02)
        received = b""
        for byte in GET * 100:
            client.sendall(bytes([byte]))
            try:
                received = client.recv(1000)
                break
            except TimeoutError:
                continue
        assert received.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("request_first", [False, True])
def test_a_connection_without_a_request_is_ended(hasty: DRPCServer, request_first: bool) -> None:
    received = sent(hasty, GET) if request_first else sent(hasty)
    assert received.endswith(b'[["cat"]]' if request_first else b"")


def test_a_client_that_takes_no_answer_is_ended(hasty: DRPCServer) -> None:
    with closing(connected(hasty)) as client:
        client.sendall(b"GET /drpc/long/50000000 HTTP/1.1\r\nHost:\r\n\r\n" * 3)
        until(lambda: len(hasty.connections) == 1)
        until(lambda: len(hasty.connections) == 0)


@pytest.mark.slow
def test_the_call_of_a_client_that_hangs_up_leaves_the_queue(monkeypatch: Any) -> None:
    monkeypatch.setattr("trident.drpc.gathering.LONG", 1e9)
    with held() as (drpc, get), DRPCServer(drpc, port=0) as server:
        with closing(connected(server)) as client:
            client.sendall(b"GET /drpc/words/a HTTP/1.1\r\nHost:\r\n\r\n")
            until(lambda: drpc.waiting("words") == 1)
        until(lambda: drpc.waiting("words") == 0)
        assert not get.go_on.is_set()
    assert get.asked == [["held"]]


def test_more_connections_than_the_limit_are_refused_until_one_ends() -> None:
    limits = DRPCLimits(connections=20)
    with DRPCServer(echo(), port=0, limits=limits) as server, ExitStack() as stack:
        clients = [stack.enter_context(closing(connected(server))) for _ in range(20)]
        until(lambda: len(server.connections) == 20)
        refused = sent(server, GET)
        assert refused.startswith(b"HTTP/1.1 503 ") or refused == b""
        clients[0].sendall(GET)
        assert clients[0].recv(1000).endswith(b'[["cat"]]')
        clients[1].close()
        until(lambda: len(server.connections) == 19)
        assert b"200 OK" in sent(server, GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))


@pytest.mark.slow
def test_two_thousand_idle_connections_keep_nobody_from_an_answer() -> None:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    number = min(2000, (soft - 300) // 2)
    with DRPCServer(echo(), port=0) as server, ExitStack() as stack:
        clients = [stack.enter_context(closing(connected(server))) for _ in range(number)]
        until(lambda: len(server.connections) == number)
        clients[-1].sendall(GET)
        assert clients[-1].recv(1000).endswith(b'[["cat"]]')


def test_bodies_that_come_in_part_have_a_limit_together() -> None:
    limits = DRPCLimits(received=100_000, args=60_000)
    head = (
        b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nContent-Length: 60000\r\nConnection: close\r\n\r\n"
    )
    with (
        DRPCServer(echo(), port=0, limits=limits) as server,
        closing(connected(server)) as first,
        closing(connected(server)) as second,
    ):
        first.sendall(head + b"a" * 59_999)
        until(lambda: server.connections.received >= 59_999)
        second.sendall(head + b"a" * 60_000)
        assert everything(second).startswith(b"HTTP/1.1 503 ")
        first.sendall(b"a")
        assert everything(first).startswith(b"HTTP/1.1 200 ")
        assert server.connections.received == 0


@pytest.mark.parametrize(
    ("begins", "goes_on"),
    [
        (b"GET /drpc/echo/cat HTTP/1.1\r\nHost:\r\nX-Long: ", b""),
        (
            b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Long: ",
            b"",
        ),
        (b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nContent-Length: 9\r\nX-Long: ", b"\r\n\r\nbody"),
    ],
    ids=["head", "trailer", "head before a body"],
)
def test_heads_that_come_in_part_have_a_limit_together(begins: bytes, goes_on: bytes) -> None:
    part = b"a" * 60_000 + goes_on
    with (
        DRPCServer(echo(), port=0, limits=DRPCLimits(received=100_000)) as server,
        closing(connected(server)) as first,
        closing(connected(server)) as second,
    ):
        for client in (first, second):
            client.sendall(begins)
        until(lambda: len(server.connections) == 2)
        first.sendall(part)
        until(lambda: server.connections.received >= 60_000)
        second.sendall(part)
        assert everything(second).startswith(b"HTTP/1.1 503 ")
        first.close()
        until(lambda: server.connections.received == 0)


@pytest.mark.parametrize(
    "begins",
    [
        b"GET / HTTP/1.1\r\nHost:\r\nX-Long: ",
        b"POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Long: ",
    ],
    ids=["head", "trailer"],
)
def test_a_head_in_part_counts_where_all_of_it_comes_at_once(begins: bytes) -> None:
    async def counted() -> int:
        connection, connections = unconnected(DRPCLimits())
        connection.data_received(begins + b"a" * 60_000)
        return connections.received

    assert asyncio.run(counted()) >= 60_000


def test_requests_that_wait_for_the_one_before_have_a_limit_together() -> None:
    limits = DRPCLimits(received=100_000, timeout=0.5)
    head = (
        b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nContent-Length: 60000\r\nConnection: close\r\n\r\n"
    )
    with held() as (drpc, _), DRPCServer([drpc, echo()], port=0, limits=limits) as server:
        with closing(connected(server)) as first, closing(connected(server)) as second:
            for client in (first, second):
                client.sendall(b"GET /drpc/words/held HTTP/1.1\r\nHost:\r\n\r\n")
            until(lambda: server.functions.under_way == 2)
            first.sendall(head + b"a" * 60_000)
            until(lambda: 60_000 < server.connections.received < 64_000)
            second.sendall(head + b"a" * 60_000)
            assert b" 200 " not in everything(second)
            assert b" 200 " in everything(first)
        until(lambda: server.connections.received == 0)


def test_a_server_that_stops_answers_the_calls_that_are_here(monkeypatch: Any) -> None:
    monkeypatch.setattr("trident.drpc.gathering.LONG", 1e9)
    with held() as (drpc, get):
        server = DRPCServer(drpc, port=0).start()
        with closing(connected(server)) as client, closing(connected(server)) as idle:
            client.sendall(b"GET /drpc/words/a HTTP/1.1\r\nHost:\r\n\r\n")
            until(lambda: drpc.waiting("words") == 1)
            stopping = Thread(target=server.stop, args=(PATIENCE,))
            stopping.start()
            assert everything(idle) == b""
            with pytest.raises(ConnectionRefusedError):
                connected(server)
            get.go_on.set()
            received = everything(client)
            assert received.endswith(b'[["a",1]]')
            assert b"connection: close" in received
            stopping.join(PATIENCE)
        server.stop()


def received_by_tls(context: ssl.SSLContext, server: DRPCServer) -> bytes:
    try:
        with context.wrap_socket(connected(server)) as client:
            client.sendall(GET)
            return client.recv(1000)
    except OSError:  # of which the errors of TLS are
        return b""


def test_tls_by_files_and_only_to_clients_with_a_certificate(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    certfile, keyfile, authority = made.certificate, made.key, made.authority
    trusting = ssl.create_default_context(cafile=authority)
    trusting.check_hostname = False
    with DRPCServer(echo(), port=0, certfile=certfile, keyfile=keyfile) as server:
        assert server.url.startswith("https://")
        assert received_by_tls(trusting, server).endswith(b'[["cat"]]')
        assert b"200 OK" not in sent(server, GET)
    with DRPCServer(
        echo(), port=0, certfile=certfile, keyfile=keyfile, client_ca=authority
    ) as server:
        assert b"200 OK" not in received_by_tls(trusting, server)
        trusting.load_cert_chain(certfile, keyfile)
        assert received_by_tls(trusting, server).endswith(b'[["cat"]]')


def test_connections_in_their_handshake_count_as_any_other(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    trusting = ssl.create_default_context(cafile=made.authority)
    trusting.check_hostname = False
    limits = DRPCLimits(connections=2, slow=PATIENCE)
    with (
        DRPCServer(
            echo(), port=0, certfile=made.certificate, keyfile=made.key, limits=limits
        ) as server,
        closing(connected(server)) as first,
        closing(connected(server)),
    ):
        until(lambda: len(server.connections) == 2)
        assert received_by_tls(trusting, server) == b""
        first.close()
        until(lambda: len(server.connections) == 1)
        assert received_by_tls(trusting, server).endswith(b'[["cat"]]')


def test_a_handshake_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    files = {"certfile": made.certificate, "keyfile": made.key}
    with (
        DRPCServer(echo(), port=0, limits=DRPCLimits(slow=0.2), **files) as server,
        closing(connected(server)) as client,
    ):
        assert everything(client) == b""
        until(lambda: len(server.connections) == 0)


def test_without_the_parser_of_http_the_line_that_installs_it_is_told(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "httptools", None)
    monkeypatch.delitem(sys.modules, "trident.server.http_protocol")
    with pytest.raises(DRPCUsageError, match=r'pip install "trident-spark\[drpc\]"'):
        DRPCServer(echo(), port=0).start()


def test_what_cannot_be_served_leaves_nothing_open() -> None:
    cleaned: list[Function] = []

    class Cleaned(Function):
        def execute(self, tuple: Any, collector: Any) -> None: ...

        def cleanup(self) -> None:
            cleaned.append(self)

    topology = TridentTopology()
    topology.newDRPCStream("f").each("args", Cleaned(), "out").project("out")
    for make in (DRPCServer, DRPCApp):
        with pytest.raises(DRPCUsageError, match="found 'int'"):
            make([topology, 5])
    assert len(cleaned) == 2


def test_what_a_server_cannot_use_is_refused(tmp_path: Path, server: DRPCServer) -> None:
    with pytest.raises(DRPCUsageError, match=f"127.0.0.1:{server.port} is taken. Give another"):
        DRPCServer(echo(), port=server.port).start()
    with pytest.raises(DRPCUsageError, match="a number from 0 to 65535, or None; found 70000"):
        DRPCServer(echo(), port=70000)
    with pytest.raises(DRPCUsageError, match="no certificate can be read"):
        DRPCServer(echo(), certfile=tmp_path / "none.pem")
    with pytest.raises(DRPCUsageError, match="give certfile= too"):
        DRPCServer(echo(), keyfile=tmp_path / "none.pem")
    with pytest.raises(DRPCUsageError, match="found 'int'"):
        DRPCServer(5)
    with pytest.raises(DRPCUsageError, match="no queries and no state to show. Declare a query"):
        DRPCServer(TridentTopology())


def word_count(spout: FeederBatchSpout, state: Any) -> TridentTopology:
    topology = TridentTopology()
    words = topology.newStream("lines", spout).each("line", Split(), "word").groupBy("word")
    known = words.persistentAggregate(state, Count(), "count")
    topology.newDRPCStream("count").stateQuery(known, "args", MapGet(), "n").project("n")
    return topology


def got(server: DRPCServer, path: str) -> tuple[int, Any]:
    assert server.port is not None
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as client:
        client.request("GET", path)
        response = client.getresponse()
        return response.status, json.loads(response.read())


def test_a_run_and_another_process_of_its_topology_answer_the_same(tmp_path: Path) -> None:
    spout = FeederBatchSpout("line string")
    topology = word_count(spout, sqlite.opaque(tmp_path / "counts.db"))
    # What another process has: the plan, declared again.
    elsewhere = word_count(FeederBatchSpout("line string"), sqlite.opaque(tmp_path / "counts.db"))
    with elsewhere.serve(port=0) as reader:
        assert got(reader, "/drpc/count/cat")[0] == 503
        with topology.start() as run:
            server = run.serve(port=0)
            spout.feed([("the cat",)], PATIENCE)
            assert got(server, "/drpc/count/cat") == (200, [[1]])
            assert got(reader, "/drpc/count/cat") == (200, [[1]])
        with pytest.raises(ConnectionRefusedError):
            got(server, "/drpc/count/cat")
        assert got(reader, "/drpc/count/cat") == (200, [[1]])


def test_a_run_that_has_been_stopped_serves_no_more() -> None:
    run = echo().start()
    run.stop()
    with pytest.raises(UsageError, match="the run has been stopped"):
        run.serve(port=0)


def test_a_server_that_would_listen_nowhere_is_refused() -> None:
    with pytest.raises(DRPCUsageError, match="listen nowhere. Give port= or thrift_port="):
        DRPCServer(echo(), port=None)


def test_a_state_in_the_memory_of_another_process_is_refused() -> None:
    topology = word_count(FeederBatchSpout("line string"), MemoryMapState.Factory())
    with pytest.raises(DRPCUsageError, match="memory of the run's process: 'count'"):
        topology.serve(port=0)
    with topology.start(), topology.serve(port=0) as server:
        assert got(server, "/drpc/count/cat") == (200, [[None]])


_PIECES = st.sampled_from(
    [
        *(b"GET ", b"POST ", b"/drpc/echo/", b"a", b"%C3%BC", b"%ff", b" HTTP/1.1\r\n", b"\r\n"),
        *(b" HTTP/1.1\r\nHost: a.localhost\r\n", b" HTTP/1.0\r\n", b"Host: a\r\n", b"http://a/b"),
        *(b"Content-Length: 5\r\n", b"Content-Length: 99999\r\n", b"Content-Length: -1\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"ffffffffffff\r\n"),
        *(b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\nConnection: upgrade\r\n", b"x" * 500),
        *(b"Authorization: Bearer \xff\r\n", b"X-DRPC-Timeout: x\r\n", b"\x00", b": ", b"hello"),
    ]
)


@settings(max_examples=3 * settings.default.max_examples)
@given(st.lists(st.one_of(_PIECES, st.binary(max_size=40)), max_size=30))
def test_whatever_bytes_come_are_answered_or_ended(parts: list[bytes]) -> None:
    for line in asyncio.run(fed(parts)).split(b"\r\n"):
        if line.startswith(b"HTTP/1.1 "):
            status = int(line.split()[1])
            assert 100 <= status < 500 or status == 505  # a version that isn't spoken


@given(st.binary(min_size=1, max_size=300), st.lists(st.integers(1, 60), max_size=20))
def test_a_request_is_the_same_however_its_bytes_come(body: bytes, cuts: list[int]) -> None:
    request = b"POST /drpc/echo HTTP/1.1\r\nHost:\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )
    parts, rest = [], request
    for cut in cuts:
        parts.append(rest[:cut])
        rest = rest[cut:]
    answer = asyncio.run(fed([part for part in [*parts, rest] if part]))
    assert answer == asyncio.run(fed([request]))
    assert (b"200 OK" in answer) == (body.decode(errors="replace").encode() == body)
