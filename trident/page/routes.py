"""The URLs of the page."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from trident.drpc.errors import DRPCAccessError
from trident.page.document import document, policy
from trident.page.feed import Feed
from trident.page.shown import Shown, shown
from trident.plan.explain import explain
from trident.plan.plan import Plan
from trident.plan.plan_dict import to_dict
from trident.server.access import Access
from trident.server.router import JSON, Request, Response, Router, Streamed, failure

PAGE = "page"
"""What ``allow=`` calls the page."""
_FRESH = ("Cache-Control", "no-store")
_PLAIN = ("X-Content-Type-Options", "nosniff")
_HTML = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Security-Policy", policy()),
    ("Referrer-Policy", "no-referrer"),
    _FRESH,
    _PLAIN,
)
_EVENTS = (("Content-Type", "text/event-stream"), ("X-Accel-Buffering", "no"), _FRESH, _PLAIN)


def add_page_routes(
    router: Router,
    access: Access,
    plans: Sequence[Plan],
    figures: Callable[[], Mapping[str, Any]],
) -> Feed:
    """Have a router answer ``GET /``, ``/events``, ``/figures.json`` and ``/plan.json``.

    Parameters
    ----------
    router : Router
        The router.
    access : Access
        Who may see them; they are called ``"page"``. As browsers ask people for a password, not
        for a token, the password is the token then, and the name is anything.
    plans : sequence of Plan
        What is drawn.
    figures : callable
        What a run, or several, tell of themselves, as `Run.figures`; called at most once a second,
        in a thread of its own.

    Returns
    -------
    Feed
        Which has to be closed with the router, for what is sent to watchers to end.
    """
    drawn = [to_dict(plan) for plan in plans]
    explained = [explain(plan) for plan in plans]

    def look() -> Shown:
        return shown(figures(), drawn)

    feed = Feed(look)

    # Made once a look, as the event loop waits for it: milliseconds for a large topology.
    made: tuple[Shown | None, bytes] = (None, b"")

    async def page(request: Request) -> Response | Streamed:
        nonlocal made
        now = await feed.latest()
        if made[0] is not now:
            made = now, document(drawn, explained, now).encode()
        return Response(200, made[1], _HTML)

    async def events(request: Request) -> Response | Streamed:
        if feed.full:
            return _unavailable("TOO_MANY_WATCHERS", "as many watch as may; try again later", 10)
        return Streamed(200, feed.events(), _EVENTS)

    async def latest(request: Request) -> Response | Streamed:
        now = await feed.latest()
        return Response(200, json.dumps(now.figures).encode(), (JSON, _FRESH))

    async def plan(request: Request) -> Response | Streamed:
        return Response(200, json.dumps(drawn).encode(), (JSON, _FRESH))

    found = {"/": page, "/events": events, "/figures.json": latest, "/plan.json": plan}
    for path, answer in found.items():
        router.add("GET", path, _for_those_allowed(access, answer))
    return feed


_Answer = Callable[[Request], Awaitable[Response | Streamed]]


def _for_those_allowed(access: Access, answer: _Answer) -> _Answer:
    async def checked(request: Request) -> Response | Streamed:
        try:
            access.check(PAGE, request.token or _password(request))
        except DRPCAccessError as error:
            response = failure(error)
            if response.status != 401:
                return response
            asks = ("WWW-Authenticate", 'Basic realm="trident", charset="UTF-8"')
            return response._replace(headers=(*response.headers, asks))
        try:
            return await answer(request)
        except TimeoutError:
            return _unavailable("NO_FIGURES", "the figures could not be had in time", 1)

    return checked


def _unavailable(name: str, message: str, seconds: int) -> Response:
    told = {"error": name, "errorMessage": message}
    return Response(503, json.dumps(told).encode(), (JSON, ("Retry-After", str(seconds))))


def _password(request: Request) -> str | None:
    """The password of ``Authorization: Basic``."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return b64decode(given, validate=True).decode().partition(":")[2] or None
    except ValueError:  # of which a UnicodeDecodeError is one
        return None
