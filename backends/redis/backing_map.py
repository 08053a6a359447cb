"""The backing map over one Redis server: alone, or the master that Sentinels name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from trident.backends.redis.control import remove, replace
from trident.backends.redis.layouts import CHUNK, HashLayout, Layout, StringLayout
from trident.backends.redis.sharded_map import ShardedMap, skip_repeated
from trident.states.asking import Reading
from trident.states.errors import StateError
from trident.states.keys import CONTROL_KEY
from trident.states.sharding import shard_of

_LOOKS = 8
"""How many processes list a server's keys side by side: it answers one at a time."""
_PAGES_FOR_AN_ERROR = 20
"""How many pages of a server's keys are searched for the text of an error."""


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
        """Return the first key that could be an entry of this state.

        Raises StateError if another state's redis keys would be entries of this one, or the other
        way round: ``a:b:c`` is the entry ``c`` of ``a:b``, and ``b:c`` of ``a``.
        """
        name = self._layout.name
        outer = [name[:end] for end in _colons(name)]
        self._check_apart(self._existing_states({each: [_string_control(each)] for each in outer}))
        for page in self._pages():
            for key in page:
                self._check_nested(key)
                return f"the entry {key!r}"
        return None

    def entries(self) -> list[tuple[bytes, bytes]]:
        """Return every key and its value, old or new for one that is written meanwhile."""
        return list(dict(chain.from_iterable(self.pages())).items())

    def parts(self, count: int) -> list[tuple[int, int]]:
        """Return few parts, because listing each of them goes through all keys."""
        count = min(count, _LOOKS)
        return [(number, count) for number in range(count)]

    def pages(self, part: tuple[int, int] | None = None) -> Iterator[list[tuple[bytes, bytes]]]:
        if part is None:
            return self._read_pages(self._pages())
        number, count = part
        keys = ([key for key in page if shard_of(key, count) == number] for page in self._pages())
        return self._read_pages(skip_repeated(keys))

    def prefixes(self) -> list[str]:
        found: set[bytes] = set()
        cursor: bytes | None = None
        for _ in range(_PAGES_FOR_AN_ERROR):
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
                f"with another one there, around {min(others)!r}. Give a prefix such that neither "
                "of the two begins with the other one and ':'."
            )

    def _pages(self) -> Iterator[list[bytes]]:
        return map(self._own_keys, self._scan(0))

    def _own_keys(self, page: Sequence[bytes]) -> list[bytes]:
        """Return those keys of `page` that are this state's."""
        return list(page)

    def _check_nested(self, key: bytes) -> None:
        """Raise StateError if `key` is an entry of a state whose prefix begins with this one's."""
        if isinstance(self._layout, StringLayout):
            prefix = self._layout.prefix
            self._check_apart(self._existing_states({key: _controls_of(prefix + key, len(prefix))}))

    def _existing_states(self, controls: Mapping[bytes, Sequence[bytes]]) -> set[bytes]:
        """Return each name in `controls` if one of its control records exists."""
        asked = sorted(set(chain.from_iterable(controls.values())))
        existing: set[bytes] = set()
        for start in range(0, len(asked), CHUNK):
            chunk = asked[start : start + CHUNK]
            records = self._ask("MGET", *chunk)
            existing.update(key for key, record in zip(chunk, records, strict=True) if record)
        return {name for name, records in controls.items() if not existing.isdisjoint(records)}

    def _ask(self, *command: bytes | str | int) -> Any:
        [answer] = self._exchange({0: [lambda: command]})[0]
        return answer


class BareRedisMap(RedisMap):
    """The same without a prefix: every redis key that belongs to no other state is an entry."""

    shares = True

    def drop(self, fence: bytes) -> bool:
        """Raise StateError: an entry looks like any other key of the database."""
        raise StateError(
            f"{self.where}: a state without a prefix can't be dropped, as every key of the "
            "database that belongs to no other state would go. Remove its keys by hand, the "
            f"control record {self._layout.control!r} last."
        )

    def _own_keys(self, page: Sequence[bytes]) -> list[bytes]:
        others = self._existing_states({key: _controls_of(key) for key in page})
        return [key for key in page if key not in others]

    def _check_nested(self, key: bytes) -> None:
        """Accept keys of other states, which :meth:`_own_keys` leaves out."""


def _colons(key: bytes, start: int = 1) -> Iterator[int]:
    return (end for end in range(start, len(key)) if key[end : end + 1] == b":")


def _string_control(name: bytes) -> bytes:
    return StringLayout(name).control


def _controls_of(key: bytes, start: int = 1) -> list[bytes]:
    """Return the control records of all states that a redis key may belong to.

    Their prefixes have at least `start` bytes.
    """
    names = (key[:end] for end in _colons(key, start))
    own = key if key.endswith(CONTROL_KEY) else HashLayout(key).control
    return [own, *map(_string_control, names)]
