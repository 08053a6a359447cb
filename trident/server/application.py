"""The ASGI application of some routes: from a request to the endpoint that answers it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import quote, unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import Message, Receive, Scope, Send

from trident.drpc.errors import ArgumentsTooLargeError, MalformedRequestError
from trident.server.responses import ALWAYS, error_response, failure, utf8
from trident.wire.headers import TIMEOUT

Handler = Callable[[Request], Awaitable[Response]]


def route(path: str, handler: Handler, *methods: str) -> Route:
    """A route to what makes a response of a request; HEAD comes with GET.

    Parameters in the path are as they came, with their escapes: see `param`.
    """
    return Route(path, _Endpoint(handler), methods=methods or ("GET",))


def methods_and_paths(routes: Iterable[BaseRoute]) -> Sequence[tuple[str, str]]:
    """Return the method and path of everything that is answered, without HEAD."""
    return [
        (method, each.path_format)
        for each in routes
        if isinstance(each, Route)
        for method in sorted(each.methods or ())
        if method != "HEAD"
    ]


def param(request: Request, name: str, what: str) -> str:
    """Return a parameter of the path without its escapes; empty if the path doesn't have it.

    Raises MalformedRequestError, which calls it `what`, where it isn't UTF-8.
    """
    return utf8(unquote_to_bytes(request.path_params.get(name, "")), what)


def token_of(request: Request) -> str | None:
    """What follows ``Authorization: Bearer``."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def seconds_of(request: Request) -> float | None:
    """Return how long the caller waits, by ``X-DRPC-Timeout``, if it says so."""
    text = request.headers.get(TIMEOUT)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise MalformedRequestError(f"{TIMEOUT} is not a number of seconds")
    return seconds


class Application:
    """Answers requests of HTTP by routes. Only a stream may raise.

    The first route that fits answers. A body has `most` bytes at most. `problem` returns why a
    request is refused to a page of another site, and an empty text where it isn't.
    """

    def __init__(
        self,
        routes: Iterable[BaseRoute],
        most: int,
        problem: Callable[[Request], str] | None = None,
    ) -> None:
        self._router = Router(list(routes), redirect_slashes=False)
        self._most = most
        self._problem = problem

    @property
    def routes(self) -> list[BaseRoute]:
        """What is answered; a route may be added."""
        return self._router.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a request as a whole, and answer it."""

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *ALWAYS]
            await send(message)

        # Routes are found by the path with its escapes, as one may stand for a slash.
        scope = {**scope, "path": _path(scope), "root_path": "", "app": self}
        scope.setdefault("http_version", "1.1")
        scope.setdefault("query_string", b"")
        try:
            body = await _read_body(receive, self._most)
        except ClientDisconnect:
            return  # the request is incomplete
        if body is None:
            too_large = ArgumentsTooLargeError(scope["path"], self._most)
            await failure(too_large)(scope, receive, send_marked)
            return
        pending: list[Message] = [{"type": "http.request", "body": body}]

        async def receive_body() -> Message:
            return pending.pop() if pending else await asyncio.Future()

        problem = self._problem(Request(scope)) if self._problem else ""
        if problem:
            await error_response(403, "OTHER_SITE", problem)(scope, receive_body, send_marked)
            return
        try:
            await self._router(scope, receive_body, send_marked)
        except HTTPException as error:
            await _no_route(error)(scope, receive_body, send_marked)


class _Endpoint:
    """Answers by a handler, whose errors are responses too."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._handler(Request(scope, receive))
        except Exception as error:
            response = failure(error)
        await response(scope, receive, send)


def _no_route(error: HTTPException) -> Response:
    if error.status_code == 405:
        allowed = ", ".join(sorted((error.headers or {})["Allow"].split(", ")))
        message = f"there is {allowed}"
        return error_response(405, "METHOD_NOT_ALLOWED", message, ("Allow", allowed))
    advice = "there is GET /drpc/{function}/{args}"
    return error_response(404, "NOT_FOUND", f"no such path; {advice}")


def _path(scope: Scope) -> str:
    """The path below the one that the application is mounted at, with its escapes."""
    root = scope.get("root_path", "")
    raw: bytes | None = scope.get("raw_path")
    path = quote(scope["path"]) if raw is None else raw.decode("latin-1").partition("?")[0]
    return path.removeprefix(quote(root)) if root else path


async def _read_body(receive: Receive, limit: int) -> bytes | None:
    """Return the whole body, None where it is over the limit; raises ClientDisconnect."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
