"""The backing map over one Redis server: alone, or the master that Sentinels name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from trident.backends.redis.control import remove, replace
from trident.backends.redis.layouts import CHUNK, HashLayout, Layout, StringLayout
from trident.backends.redis.sharded_map import ShardedMap, each_once
from trident.states.asking import Reading
from trident.states.errors import StateError
from trident.states.keys import CONTROL_KEY
from trident.states.sharding import shard_of

_LOOKS = 8
"""How many processes look through a server's keys side by side: it answers one at a time."""
_GLANCES = 20
"""Pages of a server's keys that are looked through for the sake of an error's text."""


class RedisMap(ShardedMap):
    """The entries of one state on one server; see :class:`ShardedMap`."""

    @property
    def _layout(self) -> Layout:
        return self._layouts[0]

    def _read_control(self) -> Reading[bytes | None]:
        answers = yield from self._exchanging({0: [lambda: ("GET", self._layout.control)]})
        record: bytes | None = answers[0][0]
        return record

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        return bool(self._ask(*replace(self._layout.control, new, expected)))

    def drop(self, fence: bytes) -> bool:
        for page in self.pages():
            if page and not self.multiRemoveFenced([key for key, _ in page], fence):
                return False
        return bool(self._ask(*remove(self._layout.control, fence)))

    def occupant(self) -> str | None:
        """Look through all keys that no state with a prefix has, up to the first.

        Raises StateError where another state's redis keys would be entries of this one, or the
        other way round: ``a:b:c`` is the entry ``c`` of ``a:b``, and ``b:c`` of ``a``.
        """
        name = self._layout.name
        around = [name[:end] for end in _colons(name)]
        self._check_apart(self._begun({each: [_of_strings(each)] for each in around}))
        for page in self._pages():
            for key in page:
                self._check_nested(key)
                return f"the entry {key!r}"
        return None

    def entries(self) -> list[tuple[bytes, bytes]]:
        """Return every key and its value; one that is written meanwhile may be old or new."""
        return list(dict(chain.from_iterable(self.pages())).items())

    def parts(self, count: int) -> list[tuple[int, int]]:
        """Return parts that are each found by a look through all keys; so they are few."""
        count = min(count, _LOOKS)
        return [(number, count) for number in range(count)]

    def pages(self, part: tuple[int, int] | None = None) -> Iterator[list[tuple[bytes, bytes]]]:
        if part is None:
            return self._read_pages(self._pages())
        number, count = part
        keys = ([key for key in page if shard_of(key, count) == number] for page in self._pages())
        return self._read_pages(each_once(keys))

    def prefixes(self) -> list[str]:
        found: set[bytes] = set()
        cursor: bytes | None = None
        for _ in range(_GLANCES):
            cursor, page = self._ask(
                "SCAN", cursor or b"0", "MATCH", b"*" + CONTROL_KEY, "COUNT", CHUNK
            )
            found.update(key.removesuffix(CONTROL_KEY).removesuffix(b":") for key in page)
            if cursor == b"0":
                break
        return [name.decode(errors="replace") for name in sorted(found)]

    def _check_apart(self, others: set[bytes]) -> None:
        if others:
            raise StateError(
                f"{self.where}: a state with the prefix {self.prefix!r} would share redis keys "
                f"with another that is there, around {min(others)!r}. Take a prefix with which "
                "neither of the two begins with the other one and ':'."
            )

    def _pages(self) -> Iterator[list[bytes]]:
        return map(self._own, self._scan(0))

    def _own(self, page: Sequence[bytes]) -> list[bytes]:
        """Return those keys of `page` that are this state's."""
        return list(page)

    def _check_nested(self, key: bytes) -> None:
        """Raise where `key` is an entry of another state, whose prefix begins with this one's."""
        prefix = self._layout.prefix
        if isinstance(self._layout, StringLayout):
            self._check_apart(self._begun({key: _controls_of(prefix + key, len(prefix))}))

    def _begun(self, controls: Mapping[bytes, Sequence[bytes]]) -> set[bytes]:
        """Return the names of those `controls` of which any is there."""
        asked = sorted(set(chain.from_iterable(controls.values())))
        there: set[bytes] = set()
        for start in range(0, len(asked), CHUNK):
            chunk = asked[start : start + CHUNK]
            records = self._ask("MGET", *chunk)
            there.update(key for key, record in zip(chunk, records, strict=True) if record)
        return {name for name, records in controls.items() if not there.isdisjoint(records)}

    def _ask(self, *command: bytes | str | int) -> Any:
        [answer] = self._exchange({0: [lambda: command]})[0]
        return answer


class BareRedisMap(RedisMap):
    """The same without a prefix: every redis key that belongs to no other state is an entry."""

    shares = True

    def drop(self, fence: bytes) -> bool:
        """Refuse it: nothing tells an entry from a key of somebody else."""
        raise StateError(
            f"{self.where}: a state without a prefix can't be dropped, as every key of the "
            "database that belongs to no other state would go. Remove its keys by hand, the "
            f"control record {self._layout.control!r} last."
        )

    def _own(self, page: Sequence[bytes]) -> list[bytes]:
        others = self._begun({key: _controls_of(key) for key in page})
        return [key for key in page if key not in others]

    def _check_nested(self, key: bytes) -> None:
        """Accept keys of other states: `_own` leaves them out one by one."""


def _colons(key: bytes, start: int = 1) -> Iterator[int]:
    return (end for end in range(start, len(key)) if key[end : end + 1] == b":")


def _of_strings(name: bytes) -> bytes:
    return StringLayout(name).control


def _controls_of(key: bytes, start: int = 1) -> list[bytes]:
    """The control records of all states, by prefixes from `start`, that a redis key may be of."""
    names = (key[:end] for end in _colons(key, start))
    own = key if key.endswith(CONTROL_KEY) else HashLayout(key).control
    return [own, *map(_of_strings, names)]
