"""The queries as an ASGI application, to mount in one's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any
from urllib.parse import quote

from trident.drpc.access import Access
from trident.drpc.errors import ArgumentsTooLargeError
from trident.drpc.functions import Functions, service_of
from trident.drpc.limits import DRPCLimits
from trident.drpc.router import Request, Response, Router, failure
from trident.drpc.serving import opened

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class DRPCApp:
    """An ASGI application that answers ``/drpc/{function}/{args}``, as `DRPCServer` does.

    For FastAPI, Starlette or whatever else mounts one: ``app.mount("/storm", DRPCApp(run))``
    answers ``/storm/drpc/words/cat``. How many connections there are, and how slow they may be, is
    up to the server that it runs in.

    Parameters
    ----------
    served : Run, TridentTopology, LocalDRPC, or several
        Whose functions are answered.
    tokens, allow, limits
        Those of `DRPCServer`.

    Examples
    --------
    >>> import asyncio
    >>> from trident import TridentTopology
    >>> topology = TridentTopology()
    >>> _ = topology.newDRPCStream("upper").map(str.upper, "text")
    >>> app = DRPCApp(topology)
    >>> async def receive():
    ...     return {"type": "http.request", "body": b""}
    >>> async def send(message):
    ...     print(message.get("status") or message["body"])
    >>> scope = {"type": "http", "method": "GET", "path": "/drpc/upper/cat", "headers": []}
    >>> asyncio.run(app(scope, receive, send))
    200
    b'[["CAT"]]'
    >>> app.close()
    """

    def __init__(
        self,
        served: Any,
        *,
        tokens: Mapping[str, str] | None = None,
        allow: Mapping[str, Collection[str]] | None = None,
        limits: DRPCLimits | None = None,
    ) -> None:
        own, self._owned = opened(served)
        self._limits = limits or DRPCLimits()
        access = Access(tokens, allow)
        self.functions = Functions(map(service_of, own), access, self._limits)
        self.router = Router(self.functions)

    def close(self) -> None:
        """Take no more calls, and close the states that were opened for a topology."""
        self.functions.close()
        for service in self._owned:
            service.close()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, of a server that speaks ASGI."""
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"DRPC has no {scope['type']}")
        body = await _body(receive, self._limits.args)
        if body is None:
            too_large = ArgumentsTooLargeError(_target(scope), self._limits.args)
            response = failure(too_large)
        else:
            headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in scope["headers"]
            }
            request = Request(scope["method"], _target(scope), headers, body)
            response = await self.router.answer(request)
        await _sent(response, send)


def _target(scope: Mapping[str, Any]) -> str:
    """The path below the one that the application is mounted at, with its escapes."""
    root = scope.get("root_path", "")
    raw: bytes | None = scope.get("raw_path")
    path = quote(scope["path"]) if raw is None else raw.decode("latin-1").partition("?")[0]
    return path.removeprefix(quote(root)) if root else path


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The whole body; None where it is over the limit."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _sent(response: Response, send: Send) -> None:
    headers = [
        *((name.lower().encode(), value.encode("latin-1")) for name, value in response.headers),
        (b"content-length", str(len(response.body)).encode()),
    ]
    start = {"type": "http.response.start", "status": response.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": response.body})
