"""Who may call which function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from hmac import compare_digest

from trident.drpc.errors import DRPCAccessError, DRPCUsageError

ANYONE = "*"
"""In a list of users: everybody, with a token or without."""


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
