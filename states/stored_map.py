"""What the three kinds of map state share: a batch's updates, its flush, and reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

from trident.states.attempt import Attempt
from trident.states.backing_map import Ability, IBackingMap, abilities
from trident.states.cached import begin_caches, uncached
from trident.states.coded import coded
from trident.states.committed import CommittedReads, read_committed
from trident.states.control import Control, ControlRecord
from trident.states.errors import StaleBatchError, StateError
from trident.states.keys import encode_keys
from trident.states.map_state import Key, MapState, RemovableMapState
from trident.states.resolution import Cut
from trident.states.rules import Rules
from trident.states.serializers import JSONSerializer, Serializer
from trident.states.stand_alone import begin_stand_alone
from trident.states.state import Batch
from trident.states.updaters import Combiner, PutUpdater, ValueUpdater
from trident.states.values import StateType, Token
from trident.states.views import CommittedMap

if TYPE_CHECKING:
    from trident.states.stack import MapStateFactory


class StoredMap(CommittedReads, MapState, RemovableMapState):
    """A map state over a backing map. Updates are remembered and written once, by ``commit``.

    Lives in the process that updates or queries it and is used by one thread at a time. Inside a
    batch ``multiGet`` sees the pending updates; outside, the last committed batch.

    Parameters
    ----------
    backing : IBackingMap
        The store, perhaps under layers.
    serializer : Serializer
        Makes bytes of values, for stores that exchange bytes.
    """

    rules: Rules

    def __init__(self, backing: IBackingMap, serializer: Serializer | None = None) -> None:
        serializer = serializer or JSONSerializer()
        self.backing = backing
        self.control = Control(backing)
        self._store = coded(backing, self.kind, serializer)
        self._readers_map = uncached(backing)  # a cache holds what is not committed yet
        able = abilities(self._readers_map)  # others may write the store without this cache
        self.snapshots = Ability.SNAPSHOT in able
        self.removes = Ability.REMOVE in able
        self._readers_store = coded(self._readers_map, self.kind, serializer)
        self._attempt: Attempt | None = None
        self._stand_alone = False
        self._dead: set[bytes] = set()

    @classmethod
    def factory(
        cls,
        open: Callable[[], IBackingMap],
        *,
        hosted: Literal["driver", "executor"] = "executor",
        name: str | None = None,
        **options: Any,
    ) -> MapStateFactory:
        """Return a factory of such states over the map that `open` makes.

        Parameters
        ----------
        open : callable
            Makes the backing map; called once a partition, and once a reader. Must pickle for
            ``hosted="executor"``.
        hosted : str
            Where updates run: in tasks, or all in the driver's process.
        name : str or None
            Which of several stores that `open` could make this is.
        options
            Further parameters of :class:`~trident.states.stack.MapStateFactory`.
        """
        # The stack is built over this very class.
        from trident.states.stack import MapStateFactory, OpenedStore

        return MapStateFactory(OpenedStore(open, hosted, name), cls.rules.kind, **options)

    @property
    def coded_store(self) -> IBackingMap:
        """The store past any cache, as a map of encoded keys and value objects."""
        return self._readers_store

    @property
    def kind(self) -> StateType:  # type: ignore[override]
        """How values are kept."""
        return self.rules.kind

    def beginCommit(self, batch: Batch) -> None:
        """Begin the updates of one attempt; what was pending before is dropped.

        Parameters
        ----------
        batch : int, Token or ControlRecord
            Who keeps the control record: this state (an int, which repeated is the next
            attempt), or whoever begins batches (its token, or its record, which saves a read).

        Raises
        ------
        StaleBatchError
            When the state has begun a later attempt.
        LineageError
            When an int is given, but the state belongs to a topology.
        """
        self._attempt = None
        self._stand_alone = type(batch) is int
        record = self._record_of(batch)
        begin_caches(self.backing, record)
        self._attempt = Attempt(record, self._store, self.rules)

    def _record_of(self, batch: Batch) -> ControlRecord:
        if isinstance(batch, ControlRecord):
            return batch
        if type(batch) is int:
            return begin_stand_alone(self.control, batch)
        if not isinstance(batch, Token):
            raise StateError(
                f"a batch is begun with an int, a Token or a ControlRecord, not with {batch!r}"
            )
        found = self.control.read()
        if found is None or found.token != batch:
            raise StaleBatchError(batch, None if found is None else found.token)
        return found

    def commit(self, batch: Batch) -> None:
        """Write what is pending, each key once; with an int, that commits the batch.

        After an error nothing is pending, and the batch has to begin again.

        Raises
        ------
        StaleBatchError
            When this attempt was overtaken.
        StateError
            When another batch was begun, or none.
        """
        attempt = self._begun("commit")
        record = attempt.record
        if batch not in (record, record.token, record.token.txid):
            raise StateError(
                f"commit of {batch!r}, but {record.token} was begun; commit what was begun"
            )
        self._attempt = None
        self._dead = attempt.flush(self._dead)
        if self._stand_alone:
            if not self.control.announce(record):
                raise StaleBatchError(record.token)
            self.backing.persist()  # no log will tell it again

    def _begun(self, call: str) -> Attempt:
        if self._attempt is None:
            raise StateError(
                f"{call} outside a batch: call beginCommit first, and again after a failed commit"
            )
        return self._attempt

    def multiUpdate(self, keys: Iterable[Key], updaters: Iterable[ValueUpdater]) -> list[Any]:
        """Update each key by its updater, remember the new values, and return them."""
        attempt = self._begun("multiUpdate")
        return attempt.update(encode_keys(keys), [updater.update for updater in updaters])

    def multiPut(self, keys: Iterable[Key], values: Iterable[Any]) -> None:
        """Remember `values` for `keys`; None removes."""
        attempt = self._begun("multiPut")
        attempt.put(encode_keys(keys), [PutUpdater(value).update for value in values])

    def multiRemove(self, keys: Iterable[Key]) -> None:
        """Remember that `keys` are to be removed."""
        keys = list(keys)
        self.multiPut(keys, [None] * len(keys))

    def multiCombine(
        self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner
    ) -> list[Any]:
        """Combine a partial result into each encoded key; remember and return the new values."""
        return self._begun("multiCombine").combine(keys, partials, combiner)

    def multiFold(self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner) -> None:
        """Combine a partial result into each encoded key; a store that can adds by itself."""
        self._begun("multiFold").fold(keys, partials, combiner)

    def multiGet(self, keys: Iterable[Key]) -> list[Any]:
        """Return the values of `keys`: with what is pending inside a batch, else committed."""
        if self._attempt is not None:
            return self._attempt.get(encode_keys(keys))
        asked = list(keys)
        return read_committed([("", self)], lambda views: views[0].multiGet(asked))

    def committed(self, cut: Cut) -> CommittedMap:
        """Return a view as of `cut`; :func:`~trident.states.read_committed` makes the cut."""
        return CommittedMap(self, cut)

    def values_at(self, keys: Sequence[bytes], cut: Cut) -> list[Any]:
        """Return the values of encoded `keys` as of `cut`, past any cache."""
        return self.rules.at_cut(self._readers_store.multiGet(keys), cut)

    def entries_at(self, cut: Cut) -> list[tuple[bytes, Any]]:
        """Return all encoded keys and their values as of `cut`."""
        found = self._readers_store.entries()
        values = self.rules.at_cut([entry for _, entry in found], cut)
        return [(key, value) for (key, _), value in zip(found, values, strict=True)]

    def entries(self) -> list[tuple[bytes, Any]]:
        """Return all encoded keys and values: with what is pending inside a batch."""
        if self._attempt is None:
            return read_committed([("", self)], lambda views: views[0].entries())
        stored = [key for key, _ in self._store.entries()]
        keys = list(dict.fromkeys([*stored, *self._attempt.keys()]))
        return list(zip(keys, self._attempt.get(keys), strict=True))

    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which everything that readers read is of one moment."""
        return self._readers_map.snapshot()

    def close(self) -> None:
        """Close the store; may be called twice."""
        self._attempt = None
        self.backing.close()
