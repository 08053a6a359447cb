"""Requests to an ASGI application, without a connection."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """What an application answers; of one without an end, its beginning."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name.lower())


async def answer_of(
    app: Any, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> Answer:
    """The answer to one request; `app` is the application, or the routes that one is made of."""
    if isinstance(app, list):
        from trident.server.application import Application

        app = Application(app, 2**20)
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in (headers or {}).items()
        ],
    }
    pending = [{"type": "http.request", "body": body}]
    begun = asyncio.Event()
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        return pending.pop() if pending else await asyncio.Future()

    async def send(message: Any) -> None:
        sent.append(message)
        if message.get("more_body"):
            begun.set()

    answering = asyncio.ensure_future(app(scope, receive, send))
    beginning = asyncio.ensure_future(begun.wait())
    await asyncio.wait({answering, beginning}, return_when=asyncio.FIRST_COMPLETED)
    for task in (answering, beginning):
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    if not begun.is_set():
        answering.result()
    start, *parts = sent
    headers_sent = tuple(
        (name.decode(), value.decode("latin-1")) for name, value in start["headers"]
    )
    return Answer(start["status"], b"".join(part["body"] for part in parts), headers_sent)
