"""The queries as an ASGI application, to mount in one's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

from trident.drpc.errors import ArgumentsTooLargeError
from trident.server.access import Access
from trident.server.limits import DRPCLimits
from trident.server.router import Request, Response, Router, Streamed, failure
from trident.server.serving import Serving

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class DRPCApp:
    """An ASGI application that answers queries and shows states, as `DRPCServer` does.

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
        self._limits = limits or DRPCLimits()
        self._serving = Serving(served, Access(tokens, allow), self._limits)
        self.functions, self.router = self._serving.functions, self._serving.router

    def close(self) -> None:
        """Take no more calls, and close the states that were opened here."""
        self.functions.close()
        self._serving.close()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, of a server that speaks ASGI."""
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"DRPC has no {scope['type']}")
        try:
            body = await _body(receive, self._limits.args)
        except ConnectionResetError:
            return  # the client has hung up: what has come of its request is none
        if body is None:
            too_large = ArgumentsTooLargeError(_target(scope), self._limits.args)
            response: Response | Streamed = failure(too_large)
        else:
            headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in scope["headers"]
            }
            request = Request(scope["method"], _target(scope), headers, body)
            answered = await _answered(self.router, request, receive)
            if answered is None:
                return
            response = answered
        if isinstance(response, Streamed):
            await _streamed(response, receive, send)
        else:
            await _sent(response, send)


def _target(scope: Mapping[str, Any]) -> str:
    """The path below the one that the application is mounted at, with escapes and query."""
    root = scope.get("root_path", "")
    raw: bytes | None = scope.get("raw_path")
    path = quote(scope["path"]) if raw is None else raw.decode("latin-1").partition("?")[0]
    query = scope.get("query_string", b"").decode("latin-1")
    below = path.removeprefix(quote(root)) if root else path
    return f"{below}?{query}" if query else below


async def _answered(
    router: Router, request: Request, receive: Receive
) -> Response | Streamed | None:
    """The response; None where the client hangs up before, so that its call leaves the queue."""
    answering = asyncio.ensure_future(router.answer(request))
    hearing = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({answering, hearing}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done() and _hung_up(hearing):
            return None
        return await answering
    finally:
        for task in (answering, hearing):
            task.cancel()
        await asyncio.gather(answering, hearing, return_exceptions=True)


def _hung_up(hearing: asyncio.Future[MutableMapping[str, Any]]) -> bool:
    told = None if hearing.exception() else hearing.result()
    return told is not None and told["type"] == "http.disconnect"


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The whole body; None where it is over the limit.

    Raises
    ------
    ConnectionResetError
        When the client hangs up before its end.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _sent(response: Response, send: Send) -> None:
    # What isn't sent has no length.
    more = () if response.status == 304 else (("Content-Length", str(len(response.body))),)
    await send(_start(response, *more))
    await send({"type": "http.response.body", "body": response.body})


async def _streamed(response: Streamed, receive: Receive, send: Send) -> None:
    """Send part by part, until the client is gone or there are no more."""
    await send(_start(response))

    async def parts() -> None:
        async with aclosing(response.parts) as made:
            async for part in made:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    both = {asyncio.ensure_future(parts()), asyncio.ensure_future(gone())}
    try:
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)
    for each in done:
        each.result()


def _start(response: Response | Streamed, *more: tuple[str, str]) -> dict[str, Any]:
    headers = [
        (name.lower().encode(), value.encode("latin-1"))
        for name, value in (*response.headers, *more)
    ]
    return {"type": "http.response.start", "status": response.status, "headers": headers}
