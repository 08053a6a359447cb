"""Who may call which function, and which pages of other sites may not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trident.drpc.errors import DRPCAccessError, DRPCUsageError

if TYPE_CHECKING:
    from starlette.requests import Request

ANYONE = "*"
"""In a list of users: everybody, with a token or without."""
_PROTECTED = ("/drpc/", "/api/")
"""What a page of another site may neither call nor read."""


class Access:
    """Users with their tokens, and the functions that each may call, as Storm's simple ACL.

    If there are tokens a call needs one. ``"*"`` is everybody. A function that `allow` doesn't list
    is refused to everyone; without `allow` every user may call every function.
    """

    def __init__(
        self,
        tokens: Mapping[str, str] | None = None,
        allow: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        _check(tokens, allow)
        self._users = [(token.encode(), user) for user, token in (tokens or {}).items()]
        if not all(token for token, _ in self._users):
            raise DRPCUsageError("tokens: a token is a text that isn't empty, found", "''")
        self._allow = None if allow is None else {name: set(users) for name, users in allow.items()}
        for users in (self._allow or {}).values():
            for unknown in sorted(users - {ANYONE, *(tokens or ())}):
                what = "allow: there is no token for the user"
                raise DRPCUsageError(what, unknown, tuple(tokens or ()), "Give it in tokens=.")

    def check(self, function: str, token: str | None) -> None:
        """Refuse a call that its caller may not make.

        The DRPCAccessError has the user; None where no user has the token.
        """
        user = self.user_of(token)
        if not self._allows(function, user):
            raise DRPCAccessError(function, user)

    def allowed(self, functions: Iterable[str], token: str | None) -> tuple[str, ...]:
        """Those of some functions that the caller may call."""
        user = self.user_of(token)
        return tuple(name for name in functions if self._allows(name, user))

    def user_of(self, token: str | None) -> str | None:
        """Return who has the token; None where no user has. All tokens take the same time."""
        given = (token or "").encode(errors="surrogateescape")
        users = [user for own, user in self._users if compare_digest(own, given)]
        return users[0] if users else None

    def _allows(self, function: str, user: str | None) -> bool:
        if self._allow is None:
            return user is not None or not self._users
        users = self._allow.get(function, ())
        return ANYONE in users or user in users


def _check(tokens: object, allow: object) -> None:
    """Refuse values of another type, as in a file; they aren't shown, as they may be tokens."""
    advice = 'Write {"ann": "…"} for tokens, {"words": ["ann"]} for allow.'
    if not _maps_to(tokens, _is_text):
        raise DRPCUsageError("tokens: the token of each user is a str", "", (), advice)
    if not _maps_to(allow, _are_texts):
        raise DRPCUsageError("allow: the users of each function are a list of str", "", (), advice)


def _maps_to(given: object, is_valid: Callable[[object], bool]) -> bool:
    return given is None or (isinstance(given, Mapping) and all(map(is_valid, given.values())))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, Collection) and not _is_text(value) and all(map(_is_text, value))


class OtherSites:
    """Finds requests of pages of other sites, which a server without tokens refuses.

    A page that a browser shows may send requests too: to the server's address, without seeing the
    answer, or to a name of its own that it lets resolve to that address, as if it were its own
    server.

    `names` are the names that the server may be called by, besides its addresses and ``localhost``.
    `any_site` lets pages of other sites ask, as those that know a token may.
    """

    def __init__(
        self, names: Collection[str] = (), *, any_name: bool = False, any_site: bool = False
    ) -> None:
        self._names = {name.lower().rstrip(".") for name in names}
        self._any_name = any_name
        self._any_site = any_site

    def problem(self, request: Request) -> str:
        """Return why a request is refused; empty where it isn't."""
        headers = request.headers
        host = headers.get("host", "")
        if not self._any_name and not self._is_own_host(host):
            advice = "Ask for localhost or an address, or give the server names= or tokens="
            return f"{host!r:.200} may be a name of another site's. {advice}"
        protected = request.scope["path"].startswith(_PROTECTED)
        if self._any_site or not protected or _is_own(host, headers):
            return ""
        return "a page of another site asks. Give the server tokens=, and the page one of them"

    def _is_own_host(self, host: str) -> bool:
        """Whether only this server can have sent a page from a host: an address isn't resolved.

        A client that sends no name is no browser.
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
    """Whether only this machine can connect to a host."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_own(host: str, headers: Mapping[str, str]) -> bool:
    """Whether a request comes from a page of this server, from a person, or from no browser."""
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
