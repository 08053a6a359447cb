"""Keys under names of one's own, such as those that a KeyFactory of Storm's has given them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.errors import StateError
from trident.states.keys import decode_key
from trident.states.steps import Steps, control_of, entries_of
from trident.states.values import Token

KeyFactory = Callable[[Sequence[Any]], str]
"""Makes the name of a key, of its fields; what Storm's ``KeyFactory.build`` is."""


class NamedKeysMap(WrappedMap):
    """A map whose store keeps each key under the name that a key factory gives it.

    Such a state can't be listed: names tell no keys.

    Parameters
    ----------
    inner : IBackingMap
        The store's map.
    key_factory : callable
        Makes the name of a key, from its fields; of two keys never the same one. Must pickle where
        executors update the state.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import OpaqueMap
    >>> store = MemoryMap("named")
    >>> state = OpaqueMap(NamedKeysMap(store, lambda key: "/".join(key)))
    >>> state.beginCommit(1)
    >>> state.multiPut([("dog", "brown")], [2])
    >>> state.commit(1)
    >>> state.multiGet([("dog", "brown")]), [key for key, _ in store.entries()]
    ([2], [b'dog/brown'])
    """

    lists = False

    def __init__(self, inner: IBackingMap, key_factory: KeyFactory) -> None:
        super().__init__(inner)
        self._key_factory = key_factory

    def multiGet(self, keys: Sequence[bytes]) -> Sequence[Any]:
        return self.inner.multiGet(self._names(keys))

    def read_steps(self, keys: Sequence[bytes]) -> Steps[Sequence[Any]]:
        found: Sequence[Any] = yield from entries_of(self.inner, self._names(keys))
        return found

    def control_steps(self) -> Steps[bytes | None]:
        return (yield from control_of(self.inner))

    def multiPut(self, keys: Sequence[bytes], values: Sequence[Any]) -> None:
        self.inner.multiPut(self._names(keys), values)

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[Any], fence: bytes) -> bool:
        return self.inner.multiPutFenced(self._names(keys), values, fence)

    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        return self.inner.multiRemoveFenced(self._names(keys), fence)

    def multiGetVersioned(self, keys: Sequence[bytes]) -> Sequence[tuple[Any, Any]]:
        return self.inner.multiGetVersioned(self._names(keys))

    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        return self.inner.multiPutVersioned(self._names(keys), values, versions)

    def multiPutAt(self, keys: Sequence[bytes], values: Sequence[Any], version: int) -> None:
        self.inner.multiPutAt(self._names(keys), values, version)

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        retried: Mapping[int, int],
        fence: bytes,
    ) -> bool:
        return self.inner.multiAddFenced(self._names(keys), amounts, token, retried, fence)

    def entries(self) -> NoReturn:
        raise StateError(
            f"the state in {self.where or 'this store'} can't be listed: its keys are under the "
            "names that key_factory= gives them, which tell no keys. Ask for keys by multiGet."
        )

    def pages(self) -> NoReturn:
        self.entries()

    def _names(self, keys: Sequence[bytes]) -> list[bytes]:
        made: dict[bytes, bytes] = {}
        names = []
        for key in keys:
            fields = decode_key(key)
            name: Any = self._key_factory(fields)
            if not isinstance(name, str) or not name or name.startswith("\0"):
                raise StateError(
                    f"key_factory returned {name!r:.80} for the key {fields!r:.80}; a name is text "
                    "that is not empty and doesn't begin with U+0000"
                )
            encoded = name.encode()
            if made.setdefault(encoded, key) != key:
                raise StateError(
                    f"key_factory gives the keys {decode_key(made[encoded])!r:.80} and "
                    f"{fields!r:.80} one name, {name!r:.80}; give each a name of its own"
                )
            names.append(encoded)
        return names
