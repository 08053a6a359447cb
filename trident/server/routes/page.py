"""The URLs of the page."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trident.drpc.errors import DRPCAccessError
from trident.page.content import Content, content_of
from trident.page.document import document, policy
from trident.page.feed import Feed
from trident.server.access import Access
from trident.server.application import Handler, route, token_of
from trident.server.responses import StreamedResponse, error_response, failure, response

PAGE = "page"
"""What ``allow=`` calls the page."""
_FRESH = ("Cache-Control", "no-store")
_HTML = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Security-Policy", policy()),
    ("Referrer-Policy", "no-referrer"),
    _FRESH,
)
_EVENTS = (("Content-Type", "text/event-stream"), ("X-Accel-Buffering", "no"), _FRESH)


def page_routes(
    access: Access,
    drawn: Sequence[Mapping[str, Any]],
    explained: Sequence[str],
    figures: Callable[[], Mapping[str, Any]],
) -> tuple[list[Route], Feed]:
    """The routes ``GET /``, ``/events``, ``/figures.json`` and ``/plan.json``.

    `access` calls them ``"page"``. Browsers ask people for a name and a password, not for a token:
    the password is the token, and the name is ignored. `drawn` and `explained` are what `to_dict`
    and `explain` make of each topology. `figures` is called at most once a second, in a thread of
    its own. The feed has to be closed at the end, so that the streams to watchers end.
    """

    def look() -> Content:
        return content_of(figures(), drawn)

    feed = Feed(look)

    # Made once for each content, as it blocks the event loop: milliseconds for a large topology.
    cached: tuple[Content | None, bytes] = (None, b"")

    async def page(request: Request) -> Response:
        nonlocal cached
        now = await feed.latest()
        if cached[0] is not now:
            cached = now, document(drawn, explained, now).encode()
        return response(200, cached[1], *_HTML)

    async def events(request: Request) -> Response:
        if feed.full:
            return _unavailable("TOO_MANY_WATCHERS", "as many watch as may; try again later", 10)
        return StreamedResponse(feed.events(), *_EVENTS)

    async def latest(request: Request) -> Response:
        now = await feed.latest()
        return response(200, json.dumps(now.figures).encode(), _FRESH)

    async def plan(request: Request) -> Response:
        return response(200, json.dumps(drawn).encode(), _FRESH)

    found = {"/": page, "/events": events, "/figures.json": latest, "/plan.json": plan}
    routes = [route(path, _check_access(access, answer)) for path, answer in found.items()]
    return routes, feed


def _check_access(access: Access, answer: Handler) -> Handler:
    async def checked(request: Request) -> Response:
        try:
            access.check(PAGE, token_of(request) or _password(request))
        except DRPCAccessError as error:
            refused = failure(error)
            if refused.status_code == 401:
                asks = 'Basic realm="trident", charset="UTF-8"'
                refused.headers.append("WWW-Authenticate", asks)
            return refused
        try:
            return await answer(request)
        except TimeoutError:
            return _unavailable("NO_FIGURES", "the figures could not be had in time", 1)

    return checked


def _unavailable(name: str, message: str, seconds: int) -> Response:
    return error_response(503, name, message, ("Retry-After", str(seconds)))


def _password(request: Request) -> str | None:
    """The password of ``Authorization: Basic``."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return b64decode(given, validate=True).decode().partition(":")[2] or None
    except ValueError:  # which includes UnicodeDecodeError
        return None
