"""A store that is in trouble when a test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Self, TypeVar

from trident.states.backing_map import Codec, IBackingMap, WrappedMap
from trident.states.errors import FailedException, StateError, StateUnavailableError
from trident.states.store import Store
from trident.states.values import Token

T = TypeVar("T")


@dataclass
class Trouble:
    """What the stores of a test suffer from; changed by the test, in its thread."""

    away: int = 0
    """How many of the next calls find the store away."""
    hold: bool = False
    """Whether the next write hangs, which fails its attempt, and arrives later."""
    held: list[Callable[[], object]] = field(default_factory=list)
    """The writes that have not arrived yet."""

    def deliver(self) -> None:
        """Let the writes arrive that were held."""
        held, self.held = self.held, []
        for write in held:
            with suppress(StateError):  # refused, as a late write should be
                write()


class TroubledMap(WrappedMap):
    """A map whose store is away, or whose writes hang, when the trouble says so.

    `codec` is what is exchanged: bytes also over a map in memory that stands for a store of bytes.
    """

    def __init__(self, inner: IBackingMap, trouble: Trouble, codec: Codec | None) -> None:
        super().__init__(inner)
        self._trouble = trouble
        self._codec = codec

    @property
    def codec(self) -> Codec | None:  # type: ignore[override]
        """What is exchanged."""
        return self._codec

    def multiGet(self, keys: Sequence[Any]) -> Sequence[Any]:
        return self._arrived(self.inner.multiGet, keys)

    def multiGetVersioned(self, keys: Sequence[Any]) -> Sequence[tuple[Any, Any]]:
        return self._arrived(self.inner.multiGetVersioned, keys)

    def entries(self) -> list[tuple[Any, Any]]:
        return self._arrived(self.inner.entries)

    def getControl(self) -> bytes | None:
        return self._arrived(self.inner.getControl)

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        return self._arrived(self.inner.putControl, new, expected)

    def putControls(self, changes: Sequence[tuple[str | None, bytes, bytes]]) -> bool:
        return self._arrived(self.inner.putControls, changes)

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self._write(self.inner.multiPut, keys, values)

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        return self._write(self.inner.multiPutFenced, keys, values, fence)

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        return self._write(self.inner.multiRemoveFenced, keys, fence)

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        return self._write(self.inner.multiPutVersioned, keys, values, versions)

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        self._write(self.inner.multiPutAt, keys, values, version)

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        retried: Mapping[int, int],
        fence: bytes,
    ) -> bool:
        return self._write(self.inner.multiAddFenced, keys, amounts, token, retried, fence)

    def _arrived(self, call: Callable[..., T], *args: Any) -> T:
        if self._trouble.away > 0:
            self._trouble.away -= 1
            where = self.where or "the store"
            raise StateUnavailableError(where, "it is away, as the test wants", "It is retried.")
        return call(*args)

    def _write(self, call: Callable[..., T], *args: Any) -> T:
        if self._trouble.hold:
            self._trouble.hold = False
            self._trouble.held.append(partial(call, *args))
            raise FailedException("the write hangs, as the test wants")
        return self._arrived(call, *args)


def _of_inner(name: str) -> Any:
    return property(attrgetter(f"inner.{name}"))


@dataclass(frozen=True)
class TroubledStore(Store):
    """Opens the maps of a store, in trouble when the test says so.

    A `codec` of None leaves it to the map.
    """

    inner: Store
    trouble: Trouble
    codec: Codec | None = None
    hosted = "driver"

    identity = _of_inner("identity")
    map_type = _of_inner("map_type")
    shards = _of_inner("shards")
    max_keys = _of_inner("max_keys")
    snapshot_key = _of_inner("snapshot_key")

    def named(self, prefix: str) -> Self:
        """Return the store with `prefix`, where it was given none."""
        return replace(self, inner=self.inner.named(prefix))

    def open(self) -> IBackingMap:
        """Return the map."""
        inner = self.inner.open()
        return TroubledMap(inner, self.trouble, self.codec or inner.codec)
