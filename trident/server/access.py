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
_KEPT = ("/drpc/", "/api/")
"""What a page of another site may neither have done nor read."""


class Access:
    """Users with their tokens, and the functions that each may call, as Storm's simple ACL.

    With any token a call needs one. ``"*"`` is everybody; a function that `allow` doesn't name is
    refused to everyone, and without `allow` every user may call every function.
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

        The DRPCAccessError has the user, or none where the token is none of a user.
        """
        user = self.user_of(token)
        if not self._allows(function, user):
            raise DRPCAccessError(function, user)

    def allowed(self, functions: Iterable[str], token: str | None) -> tuple[str, ...]:
        """Those of some functions that the caller may call."""
        user = self.user_of(token)
        return tuple(name for name in functions if self._allows(name, user))

    def user_of(self, token: str | None) -> str | None:
        """Whose token it is; None where nobody's. It takes the same time for all tokens."""
        given = (token or "").encode(errors="surrogateescape")
        found = [user for own, user in self._users if compare_digest(own, given)]
        return found[0] if found else None

    def _allows(self, function: str, user: str | None) -> bool:
        if self._allow is None:
            return user is not None or not self._users
        users = self._allow.get(function, ())
        return ANYONE in users or user in users


def _check(tokens: object, allow: object) -> None:
    """Refuse what a file may hold by mistake; what was found isn't shown, as it may be a token."""
    advice = 'Write {"ann": "…"} for tokens, {"words": ["ann"]} for allow.'
    if not _holds(tokens, _is_text):
        raise DRPCUsageError("tokens: the token of each user is a str", "", (), advice)
    if not _holds(allow, _are_users):
        raise DRPCUsageError("allow: the users of each function are a list of str", "", (), advice)


def _holds(given: object, fits: Callable[[object], bool]) -> bool:
    return given is None or (isinstance(given, Mapping) and all(map(fits, given.values())))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_users(value: object) -> bool:
    return isinstance(value, Collection) and not _is_text(value) and all(map(_is_text, value))


class OtherSites:
    """Says of a request why it is refused to a page of another site; without tokens only.

    A browser shows pages of anyone's, and these send requests too: to the server's address, without
    seeing the answer, or to a name of their own that they let resolve to it, as if it were their
    own server.

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
    """Whether nobody else can connect to a host."""
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
