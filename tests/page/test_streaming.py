"""Responses without an end: what a client gets of them, and what it may cost."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from time import monotonic
from typing import Any

import pytest
from starlette.requests import Request

from tests.drpc.asking import PATIENCE, until
from trident import TridentTopology
from trident.server.application import Application, route
from trident.server.asgi import DRPCApp
from trident.server.limits import DRPCLimits
from trident.server.responses import StreamedResponse
from trident.server.server import DRPCServer

HASTY = DRPCLimits(slow=0.2, idle=0.4)


class Parts:
    """Answers ``GET /parts`` with what a test says, and notes how that ended."""

    def __init__(self, application: Application) -> None:
        self.sent = 0
        self.ended = False
        self.what: AsyncGenerator[bytes, None] = self.endless()
        application.routes.append(route("/parts", self.answer))

    async def answer(self, request: Request) -> StreamedResponse:
        return StreamedResponse(self.noted(), ("Content-Type", "text/plain"))

    async def noted(self) -> AsyncGenerator[bytes, None]:
        try:
            async for part in self.what:
                self.sent += len(part)
                yield part
        finally:
            self.ended = True

    async def endless(self) -> AsyncGenerator[bytes, None]:
        while True:
            yield b"a" * 2**16

    async def late(self, seconds: float) -> AsyncGenerator[bytes, None]:
        yield b"first"
        await asyncio.sleep(seconds)
        yield b"second"


def echo() -> TridentTopology:
    topology = TridentTopology()
    topology.newDRPCStream("echo").each("args", lambda args: [args], "out").project("out")
    return topology


@pytest.fixture
def server() -> Iterator[DRPCServer]:
    with DRPCServer(echo(), port=0, limits=HASTY) as server:
        yield server


@pytest.fixture
def parts(server: DRPCServer) -> Parts:
    return Parts(server.application)


def asked(server: DRPCServer, more: bytes = b"") -> socket.socket:
    assert server.port is not None
    client = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    client.sendall(b"GET /parts HTTP/1.1\r\nHost: localhost\r\n\r\n" + more)
    return client


def received(client: socket.socket, last: bytes) -> bytes:
    """What has come, up to what is waited for."""
    found = b""
    while not found.endswith(last + b"\r\n"):
        more = client.recv(2**16)
        assert more, found
        found += more
    return found


@pytest.mark.slow
def test_a_part_is_sent_when_it_is_there_and_no_limit_ends_what_is_quiet(
    server: DRPCServer, parts: Parts
) -> None:
    parts.what = parts.late(1.0)
    with closing(asked(server)) as client:
        head = received(client, b"first")
        assert not parts.ended
        assert b"content-length" not in head
        assert b"connection: close" in head
        received(client, b"second\r\n0\r\n")
        assert client.recv(1) == b""


def test_nothing_is_made_for_a_client_that_has_hung_up(server: DRPCServer, parts: Parts) -> None:
    parts.what = parts.late(PATIENCE)
    client = asked(server)
    received(client, b"first")
    client.close()
    until(lambda: parts.ended)
    until(lambda: len(server.connections) == 0)


def test_a_client_that_takes_nothing_is_dropped(server: DRPCServer, parts: Parts) -> None:
    with closing(asked(server)):
        until(lambda: parts.ended)
        until(lambda: len(server.connections) == 0)
    assert parts.sent < 32 * 2**20  # what the kernel keeps of it


def test_a_request_behind_one_without_an_end_is_not_answered(
    server: DRPCServer, parts: Parts
) -> None:
    parts.what = parts.late(0.1)
    with closing(
        asked(server, b"GET /drpc/echo/cat HTTP/1.1\r\nHost: localhost\r\n\r\n")
    ) as client:
        received(client, b"second\r\n0\r\n")
        assert client.recv(1) == b""
    assert server.connections.received == 0


def test_a_server_that_stops_waits_for_no_end(server: DRPCServer, parts: Parts) -> None:
    parts.what = parts.late(PATIENCE)
    with closing(asked(server)) as client:
        received(client, b"first")
        began = monotonic()
        server.stop(drain=PATIENCE)
        assert monotonic() - began < PATIENCE / 2
        assert client.recv(1) == b""
    assert parts.ended


def test_a_part_that_fails_ends_the_connection(server: DRPCServer, parts: Parts) -> None:
    async def failing() -> AsyncGenerator[bytes, None]:
        yield b"first"
        raise ValueError("odd")

    parts.what = failing()
    with closing(asked(server)) as client:
        received(client, b"first")
        assert client.recv(1) == b""


def test_an_asgi_server_is_handed_the_parts_until_its_client_is_gone() -> None:
    app = DRPCApp(echo())
    parts = Parts(app.application)
    parts.what = parts.late(PATIENCE)
    sent: list[Any] = []

    async def answered() -> None:
        gone = asyncio.Event()
        incoming = [{"type": "http.request", "body": b""}]

        async def receive() -> dict[str, Any]:
            if incoming:
                return incoming.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if message.get("body"):
                gone.set()

        scope = {"type": "http", "method": "GET", "path": "/parts", "headers": []}
        await app(scope, receive, send)

    asyncio.run(answered())
    app.close()
    start, part = sent
    assert dict(start["headers"])[b"content-type"] == b"text/plain"
    assert (part["body"], part["more_body"]) == (b"first", True)
    assert parts.ended
