r"""How entries lie in Redis: each a string of its own, or all fields of one hash.

The commands are those for one shard, and so for one server. Every script names one key, by which a
node of a cluster knows that the script is for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident.backends.redis.connections import Command
from trident.states.keys import CONTROL_KEY

CHUNK = 2000
"""Keys in one command; a script can't hand on more than about 8000 arguments."""
_CHUNK_BYTES = 2**22


@dataclass(frozen=True)
class StringLayout:
    """Each entry is a string: ``name:key``, or the bare key if `name` is empty."""

    hides: ClassVar[bool] = True
    """Whether a key of another type than an entry's is read as absent."""

    name: bytes
    ttl: int | None = None

    @property
    def prefix(self) -> bytes:
        """What a redis key has before the entry's key."""
        return self.name + b":" if self.name else b""

    @property
    def control(self) -> bytes:
        """The key of the control record, which never expires; each layout has another one."""
        return self.prefix + CONTROL_KEY

    def get(self, keys: Sequence[bytes]) -> Command:
        """Return the command that answers with a list of values, None for absent ones."""
        return ["MGET", *self._redis_keys(keys)]

    def count(self, keys: Sequence[bytes]) -> Command:
        """Return the command that counts the existing keys, of any type."""
        return ["EXISTS", *self._redis_keys(keys)]

    def types(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the redis keys that a use of `keys` touches, each with the type it must have."""
        return dict.fromkeys([self.control, *self._redis_keys(keys)], b"string")

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> Command:
        """Return the command that writes entries and when they expire, in one step."""
        pairs = _interleave(self._redis_keys(keys), values)
        if self.ttl is None:
            return ["MSET", *pairs]
        script = (
            "local puts, call = ARGV, redis.call for i = 1, #puts, 2 do "
            f"call('SETEX', puts[i], '{self.ttl}', puts[i + 1]) end"
        )
        return ["EVAL", script, 1, self.control, *pairs]

    def remove(self, keys: Sequence[bytes]) -> Command:
        """Return the command that removes entries."""
        return ["UNLINK", *self._redis_keys(keys)]

    def scan(self, cursor: bytes) -> Command:
        """Return the command that answers with the next cursor and a page of keys."""
        return ["SCAN", cursor, "MATCH", _escape(self.prefix) + b"*", "COUNT", CHUNK]

    def keys_on(self, page: Sequence[bytes]) -> list[bytes]:
        """Return the entries' keys on such a page."""
        length, control = len(self.prefix), self.control
        return [key[length:] for key in page if key != control]

    def _redis_keys(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        prefix = self.prefix
        return [prefix + key for key in keys] if prefix else keys


@dataclass(frozen=True)
class HashLayout:
    """All entries are fields of one hash, called `name`; they expire together.

    The methods are those of :class:`StringLayout`.
    """

    hides: ClassVar[bool] = False

    name: bytes
    ttl: int | None = None

    @property
    def control(self) -> bytes:
        return self.name + CONTROL_KEY

    def get(self, keys: Sequence[bytes]) -> Command:
        return ["HMGET", self.name, *keys]

    def types(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {self.control: b"string", self.name: b"hash"}

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> Command:
        pairs = _interleave(keys, values)
        if self.ttl is None:
            return ["HSET", self.name, *pairs]
        script = (
            f"redis.call('HSET', KEYS[1], unpack(ARGV)) redis.call('EXPIRE', KEYS[1], {self.ttl})"
        )
        return ["EVAL", script, 1, self.name, *pairs]

    def remove(self, keys: Sequence[bytes]) -> Command:
        return ["HDEL", self.name, *keys]

    def scan(self, cursor: bytes) -> Command:
        return ["HSCAN", self.name, cursor, "COUNT", CHUNK]

    def keys_on(self, page: Sequence[bytes]) -> list[bytes]:
        return list(page[::2])


Layout = StringLayout | HashLayout
"""The commands for the entries of one state or shard."""


def chunks(keys: Sequence[bytes], *parallel: Sequence[Any]) -> Iterator[tuple[Sequence[Any], ...]]:
    """Split keys, and the sequences parallel to them, into what one command takes.

    Examples
    --------
    >>> [len(keys) for keys, values in chunks([b"key"] * 5000, [b"value"] * 5000)]
    [2000, 2000, 1000]
    >>> [len(keys) for keys, values in chunks([b"key"] * 3, [bytes(3_000_000)] * 3)]
    [1, 1, 1]
    """
    for start in range(0, len(keys), CHUNK):
        yield from _halves([column[start : start + CHUNK] for column in (keys, *parallel)])


def _halves(columns: Sequence[Sequence[Any]]) -> Iterator[tuple[Sequence[Any], ...]]:
    """Halve until one command is small enough to be sent well within the time-out."""
    length = len(columns[0])
    if length == 1 or sum(len(each) for column in columns for each in column) <= _CHUNK_BYTES:
        yield tuple(columns)
        return
    yield from _halves([column[: length // 2] for column in columns])
    yield from _halves([column[length // 2 :] for column in columns])


def _interleave(keys: Sequence[bytes], values: Sequence[bytes]) -> list[bytes]:
    pairs = [b""] * (2 * len(keys))
    pairs[::2] = keys
    pairs[1::2] = values
    return pairs


def _escape(text: bytes) -> bytes:
    """Return the pattern that matches `text` only."""
    return re.sub(rb"([*?\[\]^\\])", rb"\\\1", text)
