"""Keeps pages of other sites from a server that asks nobody for a token.

A browser shows pages of anyone's, and these send requests too: to the server's address, without
seeing the answer, or to a name of their own that they let resolve to it, as if it were their own
server.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.requests import Request

_KEPT = ("/drpc/", "/api/")
"""What a page of another site may neither have done nor read."""


class OtherSites:
    """Says of a request why it is refused to a page of another site.

    `names` are those by which the server may be asked, besides its addresses and ``localhost``;
    `any_site` lets pages of other sites ask, as those that know a token may.
    """

    def __init__(
        self, names: Collection[str] = (), *, any_name: bool = False, any_site: bool = False
    ) -> None:
        self._names = {name.lower().rstrip(".") for name in names}
        self._any_name = any_name
        self._any_site = any_site

    def problem(self, request: Request) -> str:
        """Why a request is refused; empty where it isn't."""
        headers = request.headers
        host = headers.get("host", "")
        if not self._any_name and not self._is_nobodys(host):
            advice = "Ask for localhost or an address, or give the server names= or tokens="
            return f"{host!r:.200} may be a name of another site's. {advice}"
        if self._any_site or not request.scope["path"].startswith(_KEPT) or _is_own(host, headers):
            return ""
        return "a page of another site asks. Give the server tokens=, and the page one of them"

    def _is_nobodys(self, host: str) -> bool:
        """Whether no page can have come from a host but this server's: addresses aren't resolved.

        Who sends no name is no browser.
        """
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        name = name.lower().rstrip(".")
        if not name or name == "localhost" or name.endswith(".localhost") or name in self._names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


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


def _is_own(host: str, headers: Mapping[str, str]) -> bool:
    """Whether a request comes from a page of this server's, from a person, or from no browser."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    page = headers.get("origin", headers.get("referer"))
    if page is None:
        return True
    try:
        return urlsplit(page).netloc == host
    except ValueError:
        return False
