"""The contract of a store: two methods, and abilities that make it stronger.

The author of a store writes ``multiGet`` and ``multiPut`` of :class:`IBackingMap`. All other
methods are optional. Those that a class overrides are its *abilities* (:func:`abilities`), which
decide how writes are kept exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import cache, partial
from typing import Any, ClassVar

from trident.states.asking import Askable, Reading, Wait, begin_read, finish_read
from trident.states.errors import BackingMapError, StateError
from trident.states.keys import CONTROL_KEY
from trident.states.printable import masked
from trident.states.values import Token

Range = tuple[bytes | None, bytes | None]
"""The keys after the first one, up to and with the second; None is no bound."""


class Codec(Enum):
    """The form in which a backing map takes and returns keys and values."""

    BYTES = "bytes keys, bytes values"
    VALUES = "bytes keys, value objects"


class Ability(Enum):
    """An ability of a store beyond the two methods: a method that its class overrides."""

    FENCED = "multiPutFenced"
    ENTRY = "multiPutVersioned"
    VERSIONED = "multiPutAt"
    ADD = "multiAddFenced"
    REMOVE = "multiRemoveFenced"
    EXPIRE = "multiRemoveUpTo"
    SNAPSHOT = "snapshot"
    LIST = "entries"
    LOOK = "occupant"
    TOGETHER = "putControls"
    MOVE = "moveControls"
    PREPARE = "prepareControls"
    DROP = "drop"


class IBackingMap(Askable, ABC):
    """A map from keys to values in some store; the only thing a store's author has to write.

    It is called on executors (and on the driver, for states hosted there and for control
    records), by one thread at a time. Each process opens its own map, by the factory. Any call may
    be repeated after a failure, unless it says otherwise; the store's client must not repeat writes
    by itself.

    The attribute `codec` is the form of keys and values: ``Codec.BYTES`` (default),
    ``Codec.VALUES`` (bytes keys, value objects, for stores with typed columns), or None (tuples of
    key fields and value objects).

    Examples
    --------
    >>> class DictMap(IBackingMap):
    ...     def __init__(self):
    ...         self.held = {}
    ...     def multiGet(self, keys):
    ...         return [self.held.get(key) for key in keys]
    ...     def multiPut(self, keys, values):
    ...         self.held.update(zip(keys, values))
    >>> dogs = DictMap()
    >>> dogs.multiPut([b"dog"], [b"2"])
    >>> dogs.multiGet([b"cat", b"dog"])
    [None, b'2']
    """

    codec: ClassVar[Codec | None] = Codec.BYTES
    lasts: ClassVar[bool] = True
    """Whether entries outlive the process that wrote them.

    If not, no other process can have begun the state. So readers take a state without a control
    record for empty, which for other stores is an error.
    """
    shares: ClassVar[bool] = False
    """Whether listed entries may be somebody else's, so that a sweep must not rewrite them."""
    where: str = ""
    """How errors name the store: ``redis at host:port``; empty for the state's name alone."""
    prefix: str | None = None
    """The name that tells this state from others in the same store; None if there are none."""

    removal: str = ""
    """How errors say that a state is removed, where ``python -m trident state drop`` can't."""

    @abstractmethod
    def multiGet(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Return the values of `keys`, in their order, None for each that is absent.

        Called once for each chunk of keys in a partition of a batch; `keys` may be empty.
        """

    @abstractmethod
    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Store `values` under `keys`; readers elsewhere see them when this returns.

        They survive the end of this process from then on, and a loss of power from :meth:`flush`
        on. A failure may leave some of them written. Raise
        :class:`~trident.states.errors.StateUnavailableError` if the store can't be reached, to
        have the batch wait for it.
        """

    def getControl(self) -> bytes | None:
        """Return the control record's bytes, None if there is no record.

        Called on the driver a few times for each batch, and by readers. By default the record is a
        value under a reserved key.
        """
        key: Any = CONTROL_KEY if self.codec else (CONTROL_KEY,)
        [found] = checked_answer(self, [key], self.multiGet([key]))
        if found is None or isinstance(found, bytes):
            return found
        if isinstance(found, bytearray | memoryview):
            return bytes(found)
        raise BackingMapError(_name_of(self), _describe(found), 1)

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        """Ask for what :meth:`multiGet` returns, and return a function that waits for it.

        So readers of several states wait for all of them at once. By default the store is asked
        when that function is called.
        """
        return partial(self.multiGet, keys)

    def askControl(self) -> Wait[bytes | None]:
        """Ask for what :meth:`getControl` returns, and return a function that waits for it."""
        return self.getControl

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        """Replace the control record if it still is `expected` (None: absent).

        Returns whether it was replaced. Has to be atomic if the store can do that. The default
        compares, then puts, with a moment between the two.
        """
        if self.getControl() != expected:
            return False
        key: Any = CONTROL_KEY if self.codec else (CONTROL_KEY,)
        self.multiPut([key], [new])
        return True

    @property
    def catalog(self) -> Hashable:
        """The place of the control record, equal for states whose records are kept together.

        Used only for a map with :meth:`putControls`.
        """
        return None

    def putControls(self, changes: Sequence[tuple[str | None, bytes, bytes]]) -> bool:
        """Replace the control records of several states of one :attr:`catalog` in one atomic step.

        Each change has a state's :attr:`prefix`, its new record, and the expected old one. Returns
        False, with no record replaced, if one differs from its expected one. So a query of the
        store's own that reads several states never finds them a batch apart.
        """
        raise NotImplementedError

    def moveControls(self, moves: Sequence[tuple[str, bytes, bytes, str]]) -> bool:
        """Do as :meth:`putControls` for states that have moved, each to the last prefix given.

        For stores with readers of their own, which have to find the new state in the same step.
        """
        raise NotImplementedError

    def prepareControls(
        self, changes: Sequence[tuple[str | None, bytes, bytes]]
    ) -> tuple[Callable[[], None], Callable[[], None]] | None:
        """Do all but the last step of :meth:`putControls`, before the batch is committed.

        For stores in which the new record makes the batch visible, and which may refuse it.
        Returns a function that makes the last step, and one that gives all up; None if a record
        differs from its expected one. If this process ends, :meth:`putControls` does all anew.
        """
        raise NotImplementedError

    def drop(self, fence: bytes) -> bool:
        """Remove all entries and all that was made for this state alone, then the control record.

        Returns False, with nothing removed, if the record is not `fence`. After a failure the
        record still exists, and this may be called again.
        """
        raise NotImplementedError

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        """Store `values` only if the control record's bytes equal `fence`, in one atomic step.

        Returns False, with nothing written, if they differ or the record is absent.
        """
        raise NotImplementedError

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        """Remove entries physically, under the same condition as :meth:`multiPutFenced`."""
        raise NotImplementedError

    def multiGetVersioned(self, keys: Sequence[Any]) -> Sequence[tuple[Any, Any]]:
        """Return ``(value, version)`` for each key; ``(None, version)`` for an absent one.

        :meth:`multiPutVersioned` compares the version, which may be None for an absent key. By
        default it is the value itself.
        """
        values = self.multiGet(keys)
        return list(zip(values, values, strict=True))

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        """Store each value if its entry still has the given version.

        Returns, for each key, whether its value was stored.
        """
        raise NotImplementedError

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        """Store `values` at `version`; of several writes of one key the highest version shows.

        The version is ``2**62 | txid << 12 | attempt``, so a late write never shows.
        """
        raise NotImplementedError

    def multiRemoveUpTo(self, keys: Sequence[Any], version: int) -> None:
        """Remove the expired values of :meth:`multiPutAt` with a version up to `version`.

        A value with a higher version stays, or shows when it is written later. Needs :meth:`pages`.
        """
        raise NotImplementedError

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        retried: Mapping[int, int],
        fence: bytes,
    ) -> bool:
        """Add `amounts` to the opaque values of `keys`, each key at most once, for the attempt of
        `token`, under the same condition as :meth:`multiPutFenced`.

        The store finds the committed value of each key, by `retried` (the batches whose committed
        attempt was not 0, with that attempt). It adds the amount, or takes it as the new value of
        an absent key, and keeps the committed value as ``prev``.
        """
        raise NotImplementedError

    def flush(self) -> None:
        """Make all acknowledged writes survive a loss of power.

        Called once for each batch and state, after the last write and before the commit: for stores
        that can't afford this at every write. The default does nothing.
        """

    def incarnation(self) -> str | None:
        """Return a text that changes when the server restarts or another takes over; None: unknown.

        A text must never come back after it has changed, as a host's name might.
        """
        return None

    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which all reads, the control record's too, are of one moment.

        By default they may be of different moments.
        """
        return nullcontext()

    def entries(self) -> list[tuple[Any, Any]]:
        """Return every key and its value, tombstones too, without the control record."""
        raise NotImplementedError

    def pages(self) -> Iterator[Sequence[tuple[Any, Any]]]:
        """Yield all entries in pages that fit into memory.

        Writes made meanwhile may show or not, and a key may come twice. Between two pages any other
        method may be called. The default yields all of :meth:`entries` at once.
        """
        yield self.entries()

    def parts(self, count: int) -> Sequence[Any]:
        """Divide the keys into about `count` parts, which several processes list side by side.

        A key stays in its part. Parts pickle. :meth:`pages` of a map that overrides this takes a
        part, and yields each key in it once. By default the only part is None: all keys.
        """
        return [None]

    def occupant(self) -> str | None:
        """Return an entry that keeps a state from beginning, as ``the entry b'dog'``; None: none.

        Called once in a state's life, on the driver, if it has no control record: entries then
        belong to somebody else. It may look through the whole store, up to the first entry. The
        default finds none.

        Raises
        ------
        StateError
            When this place overlaps that of another state, which has begun.
        """
        return None

    def prefixes(self) -> list[str]:
        """Return prefixes of states that have begun in the same store, for an error's text.

        Need not find all of them, and must not take long; the default finds none.
        """
        return []

    def unmerged(self, record: bytes) -> list[str]:
        """Return the prefixes of other states in the same store that lack their committed batch.

        That is where replacing the control record makes a batch visible, and by `record`, of the
        same log, the batch is committed. The default finds none.
        """
        return []

    def close(self) -> None:
        """Let go of connections; may be called twice. The default has none."""


def abilities(backing: IBackingMap) -> frozenset[Ability]:
    """Return a store's abilities: the methods that its class overrides, without its wrappers.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMapState
    >>> Ability.FENCED in abilities(MemoryMapState.Factory().makeState().backing)
    True
    """
    return abilities_of(type(_innermost(backing)))


def has_pages(backing: IBackingMap) -> bool:
    """Return whether a store can list its entries, all at once or page by page."""
    kind = type(_innermost(backing))
    return Ability.LIST in abilities_of(kind) or kind.pages is not IBackingMap.pages


def between(bounds: Sequence[bytes]) -> list[Range]:
    """Return the ranges of keys between ascending `bounds`.

    Examples
    --------
    >>> between([b"k"])
    [(None, b'k'), (b'k', None)]
    """
    return list(zip([None, *bounds], [*bounds, None], strict=True))


@cache
def abilities_of(kind: type[IBackingMap]) -> frozenset[Ability]:
    """Return the abilities of all maps of a class."""
    return frozenset(
        ability
        for ability in Ability
        if getattr(kind, ability.value) is not getattr(IBackingMap, ability.value)
    )


def checked_answer(store: IBackingMap, keys: Sequence[Any], found: Any) -> Sequence[Any]:
    """Check that a map answered a value for each key, and no text for bytes."""
    if isinstance(found, str | bytes) or not isinstance(found, Sequence):
        answered = _describe(found)
    elif len(found) != len(keys):
        answered = f"{len(found)} value{'' if len(found) == 1 else 's'}"
    elif store.codec is Codec.BYTES and str in set(map(type, found)):
        answered = _describe(next(value for value in found if type(value) is str))
    else:
        return found
    raise BackingMapError(_name_of(store), answered, len(keys))


def _describe(found: object) -> str:
    return f"{type(found).__name__} {masked(repr(found)):.60}"


def _name_of(store: IBackingMap) -> str:
    return type(_innermost(store)).__name__


class WrappedMap(IBackingMap):
    """A map over another one. The inner map has all methods that a subclass doesn't define.

    Parameters
    ----------
    inner : IBackingMap
        The map below.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> class Loud(WrappedMap):
    ...     def multiGet(self, keys):
    ...         print("read", *keys)
    ...         return self.inner.multiGet(keys)
    >>> loud = Loud(MemoryMap("loud"))
    >>> loud.multiPut(["dog"], [2])
    >>> loud.multiGet(["dog"])
    read dog
    [2]
    """

    inner: IBackingMap

    def __init__(self, inner: IBackingMap) -> None:
        if not isinstance(inner, IBackingMap):
            raise StateError(
                f"{type(inner).__name__} can't be wrapped in another map, as no state would use it "
                "then; let it wrap that map"
            )
        self.inner = inner

    def multiGet(self, keys: Sequence[Any]) -> Sequence[Any]:
        return self.inner.multiGet(keys)

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self.inner.multiPut(keys, values)


def _of_inner(name: str) -> Any:
    return property(lambda wrapped: getattr(wrapped.inner, name))


for _name in vars(IBackingMap):
    if not _name.startswith("_") and _name not in ("multiGet", "multiPut"):
        setattr(WrappedMap, _name, _of_inner(_name))


def _innermost(backing: IBackingMap) -> IBackingMap:
    while isinstance(backing, WrappedMap):
        backing = backing.inner
    return backing


class ReadingMap(IBackingMap):
    """A map whose author writes a read once, as a `Reading`: for plain calls and for ``ask``."""

    @abstractmethod
    def _read(self, keys: Sequence[bytes]) -> Reading[list[Any]]:
        """Read the values of `keys`, None for absent ones."""

    def _read_control(self) -> Reading[bytes | None]:
        [found] = yield from self._read([CONTROL_KEY])
        return found and bytes(found)

    def multiGet(self, keys: Sequence[bytes]) -> list[Any]:
        return finish_read(self._read(keys))

    def ask(self, keys: Sequence[bytes]) -> Wait[list[Any]]:
        return begin_read(self._read(keys))

    def getControl(self) -> bytes | None:
        return finish_read(self._read_control())

    def askControl(self) -> Wait[bytes | None]:
        return begin_read(self._read_control())
