"""Keys as Memcached takes them: at most 250 bytes, without white space and control characters."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import quote

LONGEST = 250
"""How many bytes a stored key may have."""
LONGEST_PREFIX = 180
"""A longer prefix would leave no room for a key's hash."""

_MARK = b"~"
_HASHED = b"~#"  # no base64 has a #
_ODD = re.compile(rb"[\x00-\x20\x7f]")
_PLAIN = re.compile(rb"[^\x00-\x20\x7f~][^\x00-\x20\x7f]*")


def quote_prefix(prefix: str) -> str:
    """Return `prefix` without the characters that keys can't have, nor the ``:`` that ends it."""
    return quote(prefix, safe="", errors="surrogatepass")


class StoredKeys:
    """The names of a state's keys in Memcached; no two keys of any states have the same name.

    A key that Memcached accepts is stored as it is, after the prefix. Any other, and one that
    starts with ``~``, is stored as ``~`` and its base64; where that is too long, as ``~#`` and its
    SHA-256.
    """

    def __init__(self, prefix: str) -> None:
        self._front = quote_prefix(prefix).encode() + b":" if prefix else b""
        self._room = LONGEST - len(self._front)

    def of(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the stored form of each key."""
        together = b"".join(keys)
        if (
            b"" in keys
            or _MARK in together
            or _ODD.search(together)
            or max(map(len, keys), default=0) > self._room
        ):
            return list(map(self._stored_key, keys))
        front = self._front
        return [front + key for key in keys]

    def _stored_key(self, key: bytes) -> bytes:
        if len(key) <= self._room and _PLAIN.fullmatch(key):
            return self._front + key
        escaped = _MARK + urlsafe_b64encode(key).rstrip(b"=")
        if len(escaped) > self._room:
            escaped = _HASHED + sha256(key).hexdigest().encode()
        return self._front + escaped
