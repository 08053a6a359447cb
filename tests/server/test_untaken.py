"""Answers that nobody takes, connections that half close, and floods of resets."""

from __future__ import annotations

import gc
import shutil
import socket
import ssl
import struct
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import pytest

from tests.drpc.asking import PATIENCE, held, until
from tests.server.wire import everything
from tests.servers.certificates import make_certificates
from trident import TridentTopology
from trident.client.drpc_client import DRPCClient
from trident.server.limits import DRPCLimits
from trident.server.server import DRPCServer

pytestmark = pytest.mark.slow  # floods, and clients that are waited for

MB = 2**20
LIMITS = DRPCLimits(untaken=16 * MB, slow=PATIENCE, idle=PATIENCE)


def topology() -> TridentTopology:
    topology = TridentTopology()
    topology.newDRPCStream("echo").each("args", lambda args: [args], "out").project("out")
    topology.newDRPCStream("long").each("args", lambda n: ["a" * int(n)], "out").project("out")
    return topology


def get(path: str) -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode()


def ending(request: bytes) -> bytes:
    return request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


def connected(server: DRPCServer) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def untaken(server: DRPCServer) -> int:
    """What all connections keep, whatever they have counted."""
    return sum(each.untaken() for each in list(server.connections._open))


def test_answers_that_nobody_takes_have_a_limit_together_and_others_are_answered() -> None:
    with DRPCServer(topology(), port=0, limits=LIMITS) as server, ExitStack() as stack:
        for _ in range(12):
            client = stack.enter_context(closing(connected(server)))
            client.sendall(get(f"/drpc/long/{8 * MB}") * 50)
            until(lambda: server.connections._untaken_bytes > 0)
            assert untaken(server) <= 16 * MB + 9 * MB
        with DRPCClient(server.url) as good:
            assert good.execute("echo", "cat") == '[["cat"]]'
        until(lambda: len(server.connections) <= 4)


def test_an_answer_over_the_limit_is_taken_where_no_other_waits() -> None:
    with (
        DRPCServer(topology(), port=0, limits=LIMITS) as server,
        closing(connected(server)) as client,
    ):
        client.sendall(ending(get(f"/drpc/long/{40 * MB}")))
        until(lambda: untaken(server) > 16 * MB)
        taken = 0
        while more := client.recv(MB):
            taken += len(more)
        assert taken > 40 * MB
        until(lambda: server.connections._untaken_bytes == 0)


def test_within_tls_they_are_counted_too(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    files = {"certfile": made.certificate, "keyfile": made.key}
    context = ssl.create_default_context(cafile=made.authority)
    context.check_hostname = False
    with DRPCServer(topology(), port=0, limits=LIMITS, **files) as server, ExitStack() as stack:
        for _ in range(8):
            client = context.wrap_socket(connected(server))
            stack.enter_context(closing(client))
            client.sendall(get(f"/drpc/long/{8 * MB}") * 20)
        until(lambda: len(server.connections) <= 3)
        assert untaken(server) <= 25 * MB


def test_within_tls_a_client_that_takes_no_answer_is_ended(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    files = {"certfile": made.certificate, "keyfile": made.key}
    context = ssl.create_default_context(cafile=made.authority)
    context.check_hostname = False
    limits = DRPCLimits(slow=0.3)
    with (
        DRPCServer(topology(), port=0, limits=limits, **files) as server,
        closing(context.wrap_socket(connected(server))) as client,
    ):
        client.sendall(get(f"/drpc/long/{50 * MB}"))
        until(lambda: len(server.connections) == 1)
        until(lambda: len(server.connections) == 0)


def test_pipelined_requests_over_tls_are_all_answered(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    files = {"certfile": made.certificate, "keyfile": made.key}
    context = ssl.create_default_context(cafile=made.authority)
    context.check_hostname = False
    with (
        DRPCServer(topology(), port=0, limits=LIMITS, **files) as server,
        closing(context.wrap_socket(connected(server))) as client,
    ):
        last = ending(get("/drpc/echo/last"))
        client.sendall(get(f"/drpc/long/{2 * MB}") * 3 + last)
        received = everything(client)
    assert received.count(b"200 OK") == 4
    assert received.endswith(b'[["last"]]')


def test_a_client_that_sends_no_more_gets_all_its_answers() -> None:
    with DRPCServer(topology(), port=0) as server, closing(connected(server)) as client:
        client.sendall(get("/drpc/echo/a") * 5 + get(f"/drpc/long/{3 * MB}"))
        client.shutdown(socket.SHUT_WR)
        received = everything(client)
    assert received.count(b'[["a"]]') == 5
    assert received.count(b"a") > 3 * MB


def test_one_that_has_hung_up_has_no_more_than_a_moment(monkeypatch: Any) -> None:
    monkeypatch.setattr("trident.drpc.gathering.LONG", 1e9)
    limits = DRPCLimits(timeout=PATIENCE)
    with held() as (drpc, _), DRPCServer(drpc, port=0, limits=limits) as server:
        began = monotonic()
        with closing(connected(server)) as client:
            client.sendall(get("/drpc/words/a"))
            until(lambda: drpc.waiting("words") == 1)
        until(lambda: drpc.waiting("words") == 0)
        assert monotonic() - began < PATIENCE / 2


@contextmanager
def flooded(server: DRPCServer) -> Iterator[None]:
    """Four clients that connect, send a little and reset, again and again."""
    ends = Event()

    def flood() -> None:
        while not ends.is_set():
            with suppress(OSError), closing(connected(server)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(get("/drpc/echo/a")[:20])

    floods = [Thread(target=flood) for _ in range(4)]
    for each in floods:
        each.start()
    try:
        yield
    finally:
        ends.set()
        for each in floods:
            each.join()


def test_a_server_that_stops_in_a_flood_leaves_no_socket_open() -> None:
    with warnings.catch_warnings(record=True, action="always") as told:
        for _ in range(10):
            with DRPCServer(topology(), port=0) as server, flooded(server):
                until(lambda: len(server.connections) > 0)
                server.stop()
        gc.collect()
    assert not told


def test_a_flood_of_resets_holds_nobody_up() -> None:
    with DRPCServer(topology(), port=0) as server, DRPCClient(server.url) as good:
        times = []
        with flooded(server):
            for _ in range(200):
                began = monotonic()
                assert good.execute("echo", "cat") == '[["cat"]]'
                times.append(monotonic() - began)
        assert sorted(times)[len(times) // 2] < 1.0
        until(lambda: len(server.connections) <= 1)
        assert server.connections.received == 0


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("options", [("--http2",), ("--http1.0",), ("--http1.1",)])
def test_curl_is_answered(options: tuple[str, ...]) -> None:
    with DRPCServer(topology(), port=0) as server:
        command = ["curl", "--silent", "--max-time", "30", *options, "--data", "hello"]
        done = subprocess.run(
            [*command, f"{server.url}/drpc/echo"], capture_output=True, text=True, timeout=60
        )
    assert done.stdout == '[["hello"]]', done
