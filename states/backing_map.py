"""What a store has to offer: two methods, and abilities that make it stronger.

A store's author writes :class:`IBackingMap`'s ``multiGet`` and ``multiPut``. Everything else is
optional; which of it a class overrides is what the store is *able* to do (:func:`abilities`), and
decides how writes are kept exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import cache, partial
from typing import Any, ClassVar

from trident.states.asking import Askable, Reading, Wait, asked, finished
from trident.states.errors import BackingMapError, StateError
from trident.states.keys import CONTROL_KEY
from trident.states.printable import masked
from trident.states.values import Token

Range = tuple[bytes | None, bytes | None]
"""The keys behind the first one up to the second; None is no bound."""


class Codec(Enum):
    """In which form a backing map takes and returns keys and values."""

    BYTES = "bytes keys, bytes values"
    VALUES = "bytes keys, value objects"


class Ability(Enum):
    """What a store can do beyond the two methods: each is a method that its class overrides."""

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
    records), by one thread at a time. It may be created in one process and used in another only
    through the factory that opens it. Any call may be repeated after a failure, unless it says
    otherwise; the client below must not repeat writes by itself.

    The attribute `codec` says what is exchanged: ``Codec.BYTES`` (default), ``Codec.VALUES``
    (bytes keys, value objects, for stores with typed columns), or None (tuples of key fields and
    value objects).

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

    Where they don't, no other process can have begun the state. So a reader that finds no control
    record takes the state for empty, which elsewhere is an error.
    """
    shares: ClassVar[bool] = False
    """Whether what it lists may be somebody else's, so that nothing of it is rewritten unasked."""
    where: str = ""
    """How errors name the store: ``redis at host:port``; empty where the state's name has to do."""
    prefix: str | None = None
    """The name that tells this state from others in the same store; None where there is none."""

    @abstractmethod
    def multiGet(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Return the values of `keys`, in their order, None for each that is absent.

        Called once a chunk of keys a partition a batch; `keys` may be empty.
        """

    @abstractmethod
    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Store `values` under `keys`; readers elsewhere see them when this returns.

        They survive the end of this process from then on, a loss of power from :meth:`flush` on.
        A failure may leave some of them written. Raise
        :class:`~trident.states.errors.StateUnavailableError` where the store can't be reached, to
        have the batch wait for it.
        """

    def getControl(self) -> bytes | None:
        """Return the control record's bytes, None where there is none.

        Called on the driver a few times a batch, and by readers. By default it is one value
        under a reserved key.
        """
        key: Any = CONTROL_KEY if self.codec else (CONTROL_KEY,)
        [found] = checked_answer(self, [key], self.multiGet([key]))
        if found is None or isinstance(found, bytes):
            return found
        if isinstance(found, bytearray | memoryview):
            return bytes(found)
        raise BackingMapError(_map_name(self), _described(found), 1)

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        """Ask for what :meth:`multiGet` returns, and return a function that waits for it.

        So readers of several states wait for all of them at once. By default nothing is asked
        before that function is called.
        """
        return partial(self.multiGet, keys)

    def askControl(self) -> Wait[bytes | None]:
        """Ask for what :meth:`getControl` returns, and return a function that waits for it."""
        return self.getControl

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        """Replace the control record where it still is `expected` (None: absent).

        Returns whether it was replaced. Atomic in every store that can; the default compares,
        then puts, which leaves a moment between the two.
        """
        if self.getControl() != expected:
            return False
        key: Any = CONTROL_KEY if self.codec else (CONTROL_KEY,)
        self.multiPut([key], [new])
        return True

    @property
    def catalog(self) -> Hashable:
        """Where the control record is kept, equal for states whose records are kept together.

        Asked only of a map that has :meth:`putControls`.
        """
        return None

    def putControls(self, changes: Sequence[tuple[str | None, bytes, bytes]]) -> bool:
        """Replace the control records of several states of one :attr:`catalog` in one atomic step.

        Each change names a state by its :attr:`prefix`, its new record, and the one that has to be
        there. Returns False, with no record replaced, where one of them is not. So who reads
        several states in one query of the store's own never finds them a batch apart.
        """
        raise NotImplementedError

    def moveControls(self, moves: Sequence[tuple[str, bytes, bytes, str]]) -> bool:
        """Do as :meth:`putControls` for states that have moved, each to the prefix given last.

        For stores that others read by means of its own, which have to find the other state in the
        same step.
        """
        raise NotImplementedError

    def prepareControls(
        self, changes: Sequence[tuple[str | None, bytes, bytes]]
    ) -> tuple[Callable[[], None], Callable[[], None]] | None:
        """Do all that :meth:`putControls` does but its last step, before the batch is committed.

        For stores in which replacing the record is what makes a batch visible, and may be refused.
        Returns what makes the last step, and what gives all of it up; None where a record is not
        as it has to be. What is held is lost with this process, and :meth:`putControls` does all
        of it anew then.
        """
        raise NotImplementedError

    def drop(self, fence: bytes) -> bool:
        """Remove all entries, then the control record, and what was made for this state alone.

        Returns False, with nothing removed, where the record is not `fence`. Where it ends halfway
        the record is still there, and it may be called again.
        """
        raise NotImplementedError

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        """Store `values` only if the control record's bytes equal `fence`, in one atomic step.

        Returns False, with nothing written, where they differ or the record is absent.
        """
        raise NotImplementedError

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        """Remove entries physically, under the same condition as :meth:`multiPutFenced`."""
        raise NotImplementedError

    def multiGetVersioned(self, keys: Sequence[Any]) -> Sequence[tuple[Any, Any]]:
        """Return ``(value, version)`` for each key; ``(None, version)`` where it is absent.

        A version is whatever :meth:`multiPutVersioned` compares with; it may be None for absent.
        By default it is the value itself.
        """
        values = self.multiGet(keys)
        return list(zip(values, values, strict=True))

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        """Store each value only if its entry still has the given version, each by itself.

        Returns, for each key, whether it was stored.
        """
        raise NotImplementedError

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        """Store `values` at `version`; of several writes of one key the highest version shows.

        The version is ``2**62 | txid << 12 | attempt``, so a late write never shows.
        """
        raise NotImplementedError

    def multiRemoveUpTo(self, keys: Sequence[Any], version: int) -> None:
        """Remove what :meth:`multiPutAt` has stored up to `version`, as entries that have expired.

        What has a higher version stays, and shows where it is written later. Needs :meth:`pages`.
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

        The store itself finds the committed value of each key, by `retried` (the batches whose
        committed attempt was not 0, with that attempt). It adds the amount, which alone is the new
        value of a key without one, and keeps the committed value as ``prev``.
        """
        raise NotImplementedError

    def flush(self) -> None:
        """Make everything acknowledged so far survive a loss of power.

        Called once a batch a state, after its last write and before the batch is committed: a
        store that can't afford this at every write does it here. The default does nothing.
        """

    def incarnation(self) -> str | None:
        """Return what changes when the server restarts or another takes over; None: unknown.

        What was returned before is never returned again, as by a host's name it would be.
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
        """Yield what :meth:`entries` returns, so many at a time that they fit into memory.

        What is written meanwhile may show or not, and a key may come twice. Between two pages
        anything else may be called. The default yields all of :meth:`entries` at once.
        """
        yield self.entries()

    def parts(self, count: int) -> Sequence[Any]:
        """Return parts of the keys, about `count`, which as many processes list side by side.

        A key is in the same one of them at any time. They pickle. :meth:`pages` of a map that
        overrides this takes one, and yields each of its keys once. By default the only part is
        None, which is all keys.
        """
        return [None]

    def occupant(self) -> str | None:
        """Return what keeps a state from beginning here: ``the entry b'dog'``; None: nothing.

        Called once in a state's life, on the driver, where it has no control record: entries
        then belong to somebody else. It may take as long as a look through the whole store, but
        stops at the first that is found. The default finds nothing.

        Raises
        ------
        StateError
            When this place and that of another state, which has begun, overlap.
        """
        return None

    def prefixes(self) -> list[str]:
        """Return prefixes of states that have begun in the same store, for an error's text.

        A bounded look, which need not find all of them; the default finds none.
        """
        return []

    def close(self) -> None:
        """Let go of connections; may be called twice. The default has none."""


def abilities(backing: IBackingMap) -> frozenset[Ability]:
    """Return what a store can do: what its class overrides; a wrapper answers for its inner map.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMapState
    >>> Ability.FENCED in abilities(MemoryMapState.Factory().makeState().backing)
    True
    """
    return abilities_of(type(_innermost(backing)))


def has_pages(backing: IBackingMap) -> bool:
    """Return whether a store lists its entries, all at once or at least page by page."""
    kind = type(_innermost(backing))
    return Ability.LIST in abilities_of(kind) or kind.pages is not IBackingMap.pages


def between(bounds: Sequence[bytes]) -> list[Range]:
    """Return the ranges of keys that ascending `bounds` divide: behind one, up to the next.

    Examples
    --------
    >>> between([b"k"])
    [(None, b'k'), (b'k', None)]
    """
    return list(zip([None, *bounds], [*bounds, None], strict=True))


@cache
def abilities_of(kind: type[IBackingMap]) -> frozenset[Ability]:
    """Return what the maps of a class can do, without one of them."""
    return frozenset(
        ability
        for ability in Ability
        if getattr(kind, ability.value) is not getattr(IBackingMap, ability.value)
    )


def checked_answer(store: IBackingMap, keys: Sequence[Any], found: Any) -> Sequence[Any]:
    """Check that a map answered a value for each key, and no text in place of bytes."""
    if isinstance(found, str | bytes) or not isinstance(found, Sequence):
        raise BackingMapError(_map_name(store), _described(found), len(keys))
    if len(found) != len(keys):
        answered = f"{len(found)} value{'' if len(found) == 1 else 's'}"
        raise BackingMapError(_map_name(store), answered, len(keys))
    if store.codec is Codec.BYTES and str in set(map(type, found)):
        text = next(value for value in found if type(value) is str)
        raise BackingMapError(_map_name(store), _described(text), len(keys))
    return found


def _described(found: object) -> str:
    return f"{type(found).__name__} {masked(repr(found)):.60}"


def _map_name(store: IBackingMap) -> str:
    return type(_innermost(store)).__name__


class WrappedMap(IBackingMap):
    """A map over another one. Whatever a subclass doesn't define is the inner map's.

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
                f"{type(inner).__name__} lies below another wrapper of the map, where no state "
                "would read and write through it; let it wrap the wrapper"
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
    """A map of readings: a plain call runs one to its end, an ``ask`` to where it would wait."""

    @abstractmethod
    def _read(self, keys: Sequence[bytes]) -> Reading[list[Any]]:
        """Read the values of `keys`, None for each that is absent."""

    def _read_control(self) -> Reading[bytes | None]:
        [found] = yield from self._read([CONTROL_KEY])
        return found and bytes(found)

    def multiGet(self, keys: Sequence[bytes]) -> list[Any]:
        return finished(self._read(keys))

    def ask(self, keys: Sequence[bytes]) -> Wait[list[Any]]:
        return asked(self._read(keys))

    def getControl(self) -> bytes | None:
        return finished(self._read_control())

    def askControl(self) -> Wait[bytes | None]:
        return asked(self._read_control())
