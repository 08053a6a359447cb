r"""How entries lie in Redis: each a string of its own, or all fields of one hash.

The commands are those of one server, and of one virtual partition where it is a cluster's. Every
script names one key, by which a cluster's node knows that the script is for it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident.backends.redis_connections import Command, Pair
from trident.states.keys import CONTROL_KEY

CHUNK = 2000
"""Keys in one command; a script can't hand on more than about 8000 arguments."""
_CHUNK_BYTES = 2**22

_COMPARE_AND_PUT = """
local expects, count, keys = ARGV[1], #ARGV[1], {{}}
for i = 1, count do keys[i] = ARGV[3 * i - 1] end
local found = redis.call({get}, unpack(keys))
{check}local puts, stored = {{}}, {{}}
for i = 1, count do
  local same = found[i] == (expects:byte(i) == 49 and ARGV[3 * i])
  stored[i] = same and '1' or '0'
  if same then
    puts[#puts + 1] = keys[i]
    puts[#puts + 1] = ARGV[3 * i + 1]
  end
end
if #puts > 0 then {put} end
return table.concat(stored)
"""


MISFIT = ord("2")
"""What a script answers for each entry where one of them is of another type: it wrote none."""
# To MGET such a key is absent.
_CHECK_ABSENT = """
local absent = {}
for i = 1, count do if not found[i] then absent[#absent + 1] = keys[i] end end
if #absent > 0 and redis.call('EXISTS', unpack(absent)) > 0 then return string.rep('2', count) end
"""


@dataclass(frozen=True)
class Layout(ABC):
    """The commands for the entries of one state, or of one part of it.

    Parameters
    ----------
    name : bytes
        What its redis keys begin with; empty for keys as they are.
    ttl : int or None
        Seconds that an entry lives after it was written last.
    """

    name: bytes
    ttl: int | None = None

    @property
    @abstractmethod
    def control(self) -> bytes:
        """Where the control record is: always a key of its own, which never expires.

        Another one in each layout, or a state opened in the wrong one would go on from nothing.
        """

    @property
    def prefix(self) -> bytes:
        """What comes before a key that is a redis key."""
        return self.name + b":" if self.name else b""

    @abstractmethod
    def get(self, keys: Sequence[bytes]) -> Command | Pair:
        """Return the command that reads entries."""

    @abstractmethod
    def values(self, answer: Any) -> tuple[list[bytes | None], bool]:
        """Return the values that `get` was answered, None for absent ones.

        And whether the answer leaves no doubt that what is called absent is.
        """

    @abstractmethod
    def types(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return which redis keys a use of `keys` touches, and the type that each has to be of."""

    @abstractmethod
    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> Command:
        """Return the command that writes entries, and how long they live, in one step."""

    @abstractmethod
    def remove(self, keys: Sequence[bytes]) -> Command:
        """Return the command that removes entries."""

    @abstractmethod
    def compare_and_put(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[bytes | None]
    ) -> Command:
        """Return the command that writes those entries that are as expected.

        It answers with a byte for each: ``1`` where it was written, ``0`` where not; `MISFIT` for
        all of them where it found what is no entry.
        """

    @abstractmethod
    def scan(self, cursor: bytes) -> Command:
        """Return the command that answers with the next cursor and a page of what there is."""

    @abstractmethod
    def scanned(self, page: Sequence[bytes]) -> list[bytes]:
        """Return the keys on such a page."""


class StringLayout(Layout):
    """Each entry is a string: ``name:key``, or the bare key."""

    _put: ClassVar[str] = "redis.call('MSET', unpack(puts))"
    _put_for: ClassVar[str] = (
        "local call = redis.call for i = 1, #puts, 2 do "
        "call('SETEX', puts[i], '{ttl}', puts[i + 1]) end"
    )

    @property
    def control(self) -> bytes:
        return self.prefix + CONTROL_KEY

    def get(self, keys: Sequence[bytes]) -> Pair:
        # To MGET a key of another type is absent, and MSET would replace it. All are counted first:
        # one that expires between the two then raises a doubt, and hides none.
        return Pair("EXISTS", "MGET", self._redis_keys(keys))

    def values(self, answer: tuple[int, list[bytes | None]]) -> tuple[list[bytes | None], bool]:
        present, values = answer
        return values, present <= len(values) - values.count(None)

    def types(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return dict.fromkeys([self.control, *self._redis_keys(keys)], b"string")

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> Command:
        pairs = _interleaved(self._redis_keys(keys), values)
        if self.ttl is None:
            return ["MSET", *pairs]
        return ["EVAL", f"local puts = ARGV {self._puts}", 1, self.control, *pairs]

    def remove(self, keys: Sequence[bytes]) -> Command:
        return ["UNLINK", *self._redis_keys(keys)]

    def compare_and_put(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[bytes | None]
    ) -> Command:
        script = _COMPARE_AND_PUT.format(
            get="'MGET'", check=_CHECK_ABSENT, put=self._puts
        )
        rows = _compared(self._redis_keys(keys), values, versions)
        return ["EVAL", script, 1, self.control, *rows]

    def scan(self, cursor: bytes) -> Command:
        return ["SCAN", cursor, "MATCH", _escaped(self.prefix) + b"*", "COUNT", CHUNK]

    def scanned(self, page: Sequence[bytes]) -> list[bytes]:
        length, control = len(self.prefix), self.control
        return [key[length:] for key in page if key != control]

    @property
    def _puts(self) -> str:
        return self._put if self.ttl is None else self._put_for.format(ttl=self.ttl)

    def _redis_keys(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        prefix = self.prefix
        return [prefix + key for key in keys] if prefix else keys


class HashLayout(Layout):
    """All entries are fields of one hash, called `name`; they expire together."""

    @property
    def control(self) -> bytes:
        return self.name + CONTROL_KEY

    def get(self, keys: Sequence[bytes]) -> Command:
        return ["HMGET", self.name, *keys]

    def values(self, answer: list[bytes | None]) -> tuple[list[bytes | None], bool]:
        return answer, True

    def types(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {self.control: b"string", self.name: b"hash"}

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> Command:
        pairs = _interleaved(keys, values)
        if self.ttl is None:
            return ["HSET", self.name, *pairs]
        return ["EVAL", f"local puts = ARGV {self._puts}", 1, self.name, *pairs]

    def remove(self, keys: Sequence[bytes]) -> Command:
        return ["HDEL", self.name, *keys]

    def compare_and_put(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[bytes | None]
    ) -> Command:
        script = _COMPARE_AND_PUT.format(
            get="'HMGET', KEYS[1]", check="", put=self._puts
        )
        return ["EVAL", script, 1, self.name, *_compared(keys, values, versions)]

    def scan(self, cursor: bytes) -> Command:
        return ["HSCAN", self.name, cursor, "COUNT", CHUNK]

    def scanned(self, page: Sequence[bytes]) -> list[bytes]:
        return list(page[::2])

    @property
    def _puts(self) -> str:
        put = "redis.call('HSET', KEYS[1], unpack(puts))"
        return put if self.ttl is None else f"{put} redis.call('EXPIRE', KEYS[1], {self.ttl})"


def chunks(keys: Sequence[bytes], *parallel: Sequence[Any]) -> Iterator[tuple[Sequence[Any], ...]]:
    """Split parallel sequences, the first of which is keys, into what one command takes.

    Examples
    --------
    >>> [len(keys) for keys, values in chunks([b"key"] * 5000, [b"value"] * 5000)]
    [2000, 2000, 1000]
    >>> [len(keys) for keys, values in chunks([b"key"] * 3, [bytes(3_000_000)] * 3)]
    [1, 1, 1]
    """
    for start in range(0, len(keys), CHUNK):
        yield from _halves([part[start : start + CHUNK] for part in (keys, *parallel)])


def _halves(parts: Sequence[Sequence[Any]]) -> Iterator[tuple[Sequence[Any], ...]]:
    """Halve until what is sent at once is sent well within the time-out."""
    length = len(parts[0])
    if length == 1 or sum(map(_size, parts)) <= _CHUNK_BYTES:
        yield tuple(parts)
        return
    yield from _halves([part[: length // 2] for part in parts])
    yield from _halves([part[length // 2 :] for part in parts])


def _size(part: Sequence[bytes | None]) -> int:
    try:
        return sum(map(len, part))  # type: ignore[arg-type]
    except TypeError:  # a version may be None
        return sum(len(item or b"") for item in part)


def _interleaved(keys: Sequence[bytes], values: Sequence[bytes]) -> list[bytes]:
    pairs = [b""] * (2 * len(keys))
    pairs[::2] = keys
    pairs[1::2] = values
    return pairs


def _compared(
    keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[bytes | None]
) -> list[bytes]:
    """Return which versions are not absent, then each entry's key, expected value and new one."""
    expects = b"".join([b"0" if version is None else b"1" for version in versions])
    rows = [b""] * (3 * len(keys))
    rows[::3] = keys
    rows[1::3] = [version or b"" for version in versions]
    rows[2::3] = values
    return [expects, *rows]


def _escaped(text: bytes) -> bytes:
    """Return the pattern that matches `text` only."""
    return re.sub(rb"([*?\[\]^\\])", rb"\\\1", text)
