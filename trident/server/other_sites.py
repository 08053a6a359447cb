"""Keeps pages of other sites from a server that asks nobody for a token.

Such a server listens on this machine only. But a browser on it shows pages of anyone's, and these
send requests too: to the server's address, without seeing the answer, or to a name of their own
that they let resolve to this machine, as if it were their own server.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Protocol

from trident.server.router import Request, Response, Streamed, error_response


class Answers(Protocol):
    """What answers requests, as a `Router` does."""

    async def answer(self, request: Request) -> Response | Streamed:
        """Answer a request; never raises."""


class OwnSiteOnly:
    """Answers what doesn't come from a page of another site; refuses the rest by 403.

    Parameters
    ----------
    router : Answers
        What answers.

    Examples
    --------
    >>> import asyncio
    >>> class Router:
    ...     async def answer(self, request):
    ...         return Response(200, b"[]")
    >>> only = OwnSiteOnly(Router())
    >>> for host in ("localhost:3774", "127.0.0.1", "news.example"):
    ...     print(asyncio.run(only.answer(Request("GET", "/drpc/words", {"host": host}))).status)
    200
    200
    403
    """

    def __init__(self, router: Answers) -> None:
        self._router = router

    async def answer(self, request: Request) -> Response | Streamed:
        """Answer a request; never raises."""
        problem = _problem(request)
        if problem:
            return error_response(403, "OTHER_SITE", problem)
        return await self._router.answer(request)


def is_this_machine(host: str) -> bool:
    """Whether nobody else can connect to a host.

    Examples
    --------
    >>> [is_this_machine(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "cache")]
    [True, True, True, False, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _problem(request: Request) -> str:
    """Why a request is refused; empty where it isn't."""
    host = request.headers.get("host", "")
    if not _is_nobodys(host):
        advice = "Ask for localhost or an address, or give the server tokens= or host="
        return f"{host!r:.200} may be a name of another site's. {advice}"
    # Only calls do anything, and what else is answered a page of another site can't read.
    if request.path.startswith("/drpc/") and not _is_own(host, request.headers):
        return "a page of another site calls. Give the server tokens=, and the page one of them"
    return ""


def _is_nobodys(host: str) -> bool:
    """Whether no page can have come from a host but this server's: addresses aren't resolved.

    Who sends no name is no browser.
    """
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    name = name.lower().rstrip(".")
    if not name or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_own(host: str, headers: Mapping[str, str]) -> bool:
    """Whether a request comes from a page of this server's, from a person, or from no browser."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or origin.partition("://")[2] == host
