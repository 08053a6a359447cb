"""The queries as an ASGI application, to mount in one's own."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from trident.server.access import Access
from trident.server.application import Application
from trident.server.limits import DRPCLimits
from trident.server.serving import Serving


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
        limits = limits or DRPCLimits()
        self._serving = Serving(served, Access(tokens, allow), limits)
        self.functions = self._serving.functions
        self.application = Application(self._serving.routes, limits.args)

    def close(self) -> None:
        """Take no more calls, and close the states that were opened here."""
        self.functions.close()
        self._serving.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, of a server that speaks ASGI.

        When the client hangs up the request is given up, so that its call leaves the queue.
        """
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"DRPC has no {scope['type']}")
        received = asyncio.Event()

        async def receive_request() -> Message:
            message = await receive()
            if not message.get("more_body"):
                received.set()
            return message

        async def hangs_up() -> bool:
            await received.wait()
            return bool((await receive())["type"] == "http.disconnect")

        answering = asyncio.ensure_future(self.application(scope, receive_request, send))
        listening = asyncio.ensure_future(hangs_up())
        try:
            await asyncio.wait({answering, listening}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done() or listening.exception() or not listening.result():
                await answering
        finally:
            for task in (answering, listening):
                task.cancel()
            await asyncio.gather(answering, listening, return_exceptions=True)
