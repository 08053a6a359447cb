"""The ASGI application, as servers and frameworks call it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drpc.asking import held
from trident import TridentTopology
from trident.server.asgi import DRPCApp
from trident.server.limits import DRPCLimits


@pytest.fixture
def app() -> Iterator[DRPCApp]:
    topology = TridentTopology()
    topology.newDRPCStream("echo").each("args", lambda args: [args], "out").project("out")
    app = DRPCApp(topology, tokens={"ann": "s3cret"}, limits=DRPCLimits(args=10))
    yield app
    app.close()


def asked(
    app: DRPCApp, path: str, *parts: bytes, authorized: bool = True, **scope: Any
) -> tuple[int, bytes]:
    """The status and body of a response to a body in some parts."""
    pending = list(parts or [b""])
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        body = pending.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(pending)}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"authorization", b"Bearer s3cret")] if authorized else []
    method = "POST" if parts else "GET"
    given = {"type": "http", "method": method, "path": path, "headers": headers, **scope}
    asyncio.run(app(given, receive, send))
    start, body = sent
    assert (b"content-length", str(len(body["body"])).encode()) in start["headers"]
    return start["status"], body["body"]


def test_requests_are_answered_as_by_the_server(app: DRPCApp) -> None:
    assert asked(app, "/drpc/echo/cat") == (200, b'[["cat"]]')
    assert asked(app, "/drpc/echo", b"a ", b"cat") == (200, b'[["a cat"]]')
    assert asked(app, "/drpc/echo", authorized=False)[0] == 401
    assert asked(app, "/drpc/echo", b"a" * 5, b"a" * 6)[0] == 413
    assert asked(app, "/drpc/other")[0] == 404


def test_the_path_it_is_mounted_at_is_left_out_and_escapes_are_kept(app: DRPCApp) -> None:
    mounted: dict[str, Any] = {"root_path": "/a b", "raw_path": b"/a%20b/drpc/echo/x%2Fy"}
    assert asked(app, "/a b/drpc/echo/x/y", **mounted) == (200, b'[["x/y"]]')
    assert asked(app, "/a b/drpc/echo/ü", root_path="/a b") == (200, '[["ü"]]'.encode())


def hung_up(app: DRPCApp, path: str, *messages: dict[str, Any]) -> list[Any]:
    """What is sent to a client that hangs up after some messages."""
    pending = [*messages, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return pending.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"authorization", b"Bearer s3cret")]
    given = {"type": "http", "method": "POST", "path": path, "headers": headers}
    asyncio.run(app(given, receive, send))
    return sent


def test_a_body_that_its_client_does_not_end_is_no_request(app: DRPCApp) -> None:
    part = {"type": "http.request", "body": b"a", "more_body": True}
    assert hung_up(app, "/drpc/echo", part) == []


def test_the_call_of_a_client_that_hangs_up_leaves_the_queue() -> None:
    with held() as (drpc, _):
        app = DRPCApp(drpc, tokens={"ann": "s3cret"})
        assert hung_up(app, "/drpc/words", {"type": "http.request", "body": b"a"}) == []
        assert drpc.waiting("words") == 0


def test_after_its_end_it_answers_503(app: DRPCApp) -> None:
    app.close()
    assert asked(app, "/drpc/echo/a")[0] == 503


def test_the_life_of_a_server_is_acknowledged(app: DRPCApp) -> None:
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent: list[str] = []

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
