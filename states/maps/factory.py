"""The map states of the three kinds, and the factory that makes them over a store."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import wraps
from typing import Any, ClassVar, Literal, ParamSpec, Self, cast, get_args

from trident.states.backing_map import Ability, IBackingMap, abilities, abilities_of
from trident.states.kinds.opaque import OPAQUE
from trident.states.kinds.plain import PLAIN
from trident.states.kinds.transactional import TRANSACTIONAL
from trident.states.map_state import Key
from trident.states.maps.stored_map import StoredMap
from trident.states.maps.storm import StormMap
from trident.states.printable import masked
from trident.states.schema import ValueSchema
from trident.states.serializers import JSONSerializer, Serializer
from trident.states.state import StateFactory
from trident.states.store import OpenedStore, Store
from trident.states.table.cache import CachedMap
from trident.states.table.named_keys import KeyFactory, NamedKeysMap
from trident.states.table.split import MicroBatchMap
from trident.states.table.table import LayeredMap
from trident.states.values import StateType

WrittenBy = Literal["trident", "storm"]
Hosted = Literal["driver", "executor"]
P = ParamSpec("P")


class _MapOfKind(StoredMap):
    """A map state of one kind, with a factory for it."""

    @classmethod
    def factory(
        cls,
        open: Callable[[], IBackingMap],
        *,
        hosted: Hosted = "executor",
        name: str | None = None,
        **options: Any,
    ) -> MapStateFactory:
        """Return a factory of such states over the map that `open` makes.

        Parameters
        ----------
        open : callable
            Makes the backing map; called once for each partition and each reader. Must pickle for
            ``hosted="executor"``.
        hosted : str
            Where updates run: in tasks, or all in the driver's process.
        name : str or None
            Tells this store from others that `open` could make.
        options
            Further parameters of :class:`MapStateFactory`.
        """
        return MapStateFactory(OpenedStore(open, hosted, name), cls.kept_as.type, **options)


class OpaqueMap(_MapOfKind):
    """A map state that is exact for every source, whatever a replay brings.

    An entry holds its value, the committed value before it, and the token of its writer. So a later
    attempt, perhaps with other tuples or none for this key, starts from the committed value.

    Parameters
    ----------
    backing : IBackingMap or LayeredMap
        The store, perhaps under layers.
    serializer : Serializer, optional
        JSON as Storm writes it, by default.
    key : sequence
        The key of the single value.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import PutUpdater
    >>> ages = OpaqueMap(MemoryMap("ages"))
    >>> ages.beginCommit(1)
    >>> ages.multiUpdate([("rex",)], [PutUpdater(3)])
    [3]
    >>> ages.commit(1)
    >>> ages.multiGet([("rex",), ("tom",)])
    [3, None]
    """

    kept_as = OPAQUE


class TransactionalMap(_MapOfKind):
    """A map state that is exact for sources whose replays are identical.

    An entry holds its value and the batch that wrote it. A replay doesn't change an entry of its
    own batch. Takes less room than an opaque map; readers may see a batch before it commits.

    The parameters are those of :class:`OpaqueMap`.
    """

    kept_as = TRANSACTIONAL


class NonTransactionalMap(_MapOfKind):
    """A map state of values alone: takes the least room, and is at least once.

    A replayed batch is applied again. Right for values that do not depend on the stored one, such
    as the last reading of a sensor; readers may see a batch before it commits.

    The parameters are those of :class:`OpaqueMap`.
    """

    kept_as = PLAIN


_MAPS: Mapping[StateType, type[StoredMap]] = {
    each.kept_as.type: each for each in (OpaqueMap, TransactionalMap, NonTransactionalMap)
}


@dataclass(frozen=True)
class MapStateFactory(StateFactory):
    """Makes map states over a store: of one kind, with a serializer, limits and a cache.

    Pickles; tasks, the driver and readers make their own states from it.

    Parameters
    ----------
    store : Store
        The store of the entries.
    kind : StateType
        How values are kept.
    serializer : Serializer
        Makes bytes of values, for stores of bytes.
    cache_size : int
        How many entries to keep in memory, if one process updates the state (``hosted`` is
        ``"driver"``) and the store refuses late writes. Otherwise there is no cache (see
        `cache_left_out`): its entries could be old.
    max_get, max_put : int
        How many keys to read and write at once; 0 leaves it to the store.
    snapshot_key : sequence or None
        The key of the single value of an ungrouped aggregate; None leaves it to the store, which
        takes Storm's default key for its kind of store.
    written_by : str
        ``"trident"``, or ``"storm"`` to read a state that Storm wrote and no topology has taken
        over: then every entry counts, and the state can't be updated.
    hosted : str or None
        Which process of Spark's updates the state; None leaves it to the store. If executors reach
        the store, the driver may update the state too: a single writer may keep a cache, and its
        writes overlap Spark's jobs (``max_pending``).
    key_factory : callable or None
        Gives each key the name under which it is kept, from its fields:
        ``lambda key: "/".join(key)``. For a state that Storm wrote with a KeyFactory; see
        `NamedKeysMap`. None keeps keys in their encoded form.
    schema : ValueSchema or None
        The present form of values, and how values of earlier forms become it.

    Raises
    ------
    ValueError
        For ``hosted="executor"`` over a store that only the driver reaches, and for a
        `key_factory` over a store with shards.

    Examples
    --------
    >>> from trident.backends.memory import MemoryStore
    >>> factory = MapStateFactory(MemoryStore("words"), StateType.TRANSACTIONAL)
    >>> factory.makeState().kind
    <StateType.TRANSACTIONAL: 'transactional'>
    """

    makes: ClassVar[type[StoredMap] | None] = None
    """The class of the states, if a subclass makes its own."""

    store: Store
    kind: StateType = StateType.OPAQUE
    serializer: Serializer = field(default_factory=JSONSerializer)
    cache_size: int = 0
    max_get: int = 0
    max_put: int = 0
    snapshot_key: Key | None = None
    written_by: WrittenBy = "trident"
    hosted: Hosted = None  # type: ignore[assignment]
    key_factory: KeyFactory | None = None
    schema: ValueSchema | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosted", cast("Any", self.hosted) or self.store.hosted)
        for option, values in (("hosted", Hosted), ("written_by", WrittenBy)):
            found, allowed = getattr(self, option), get_args(values)
            if found not in allowed:
                raise ValueError(f"{option}={found!r}; allowed are: {', '.join(allowed)}")
        if self.hosted == "executor" and self.store.hosted == "driver":
            raise ValueError(
                f"{type(self.store).__name__}: hosted='executor', but only the driver's process "
                "reaches it; leave hosted= out"
            )
        if self.key_factory is not None and self.shards is not None:
            raise ValueError(
                f"{type(self.store).__name__}: key_factory= can't be used with a store of several "
                "shards, as a key's encoded form tells its shard; use a single server"
            )
        prefix = self.identity[2]
        if re.search("[\ud800-\udfff]", prefix):
            raise ValueError(
                f"{type(self.store).__name__}: prefix {prefix!r} holds half of a surrogate pair, "
                "which has no UTF-8; give another prefix=, or the state another name="
            )

    def __repr__(self) -> str:
        """One line: the kind, the store, and the options that are not their defaults."""
        own = _show_options(self, ("store", "kind", "hosted"))
        store = f"{type(self.store).__name__}({', '.join(_show_options(self.store, ('kind',)))})"
        return f"{type(self).__qualname__}({', '.join([self.kind.value, masked(store), *own])})"

    @classmethod
    def over(cls, store: Any, kind: StateType, options: Mapping[str, Any]) -> MapStateFactory:
        """Return a factory over a store, both made of one set of `options`.

        Parameters
        ----------
        store : dataclass
            The store's class. It takes the options with the names of its fields, the factory takes
            the others. A store with fields `kind` and `serializer`, which a store with columns for
            values needs, is given the factory's.
        kind : StateType
            How values are kept.
        options : mapping
            The parameters of both.
        """
        names = {each.name for each in fields(store)}
        of_store = {name: value for name, value in options.items() if name in names}
        if "kind" in names:
            of_store["kind"] = kind
        of_factory = {
            name: value
            for name, value in options.items()
            if name not in names or name == "serializer"
        }
        return cls(store(**of_store), kind, **of_factory)

    @property
    def identity(self) -> tuple[str, str, str]:  # type: ignore[override]
        """What tells two states apart: (store, database, prefix)."""
        return self.store.identity

    @property
    def label(self) -> str:
        return f"{super().label} over {type(self.store).__name__}"

    @property
    def shards(self) -> int | None:  # type: ignore[override]
        return self.store.shards

    @property
    def map_type(self) -> type[IBackingMap] | None:  # type: ignore[override]
        """The class of the store's map; None if it is unknown before the map is opened."""
        return self.store.map_type

    @property
    def cache_left_out(self) -> str | None:  # type: ignore[override]
        """Why there is no cache though `cache_size` asks for one; else None."""
        if not self.cache_size:
            return None
        if self.hosted != "driver":
            return (
                "several processes write the state, and each would keep entries that others have "
                "replaced"
            )
        if self.map_type is not None and Ability.FENCED not in abilities_of(self.map_type):
            return (
                f"{self.map_type.__name__} can't refuse a late write, which would replace what is "
                "kept"
            )
        return None

    @property
    def opens(self) -> Callable[[], IBackingMap]:
        """The function that opens the store's map; the user's own, if there is one."""
        return self.store.make if isinstance(self.store, OpenedStore) else self.store.open

    @property
    def max_keys(self) -> int:  # type: ignore[override]
        """How many keys the store keeps before it drops others; 0 for all."""
        return self.store.max_keys

    def check_place(self) -> None:
        """Raise UsageError if the store can't have the state."""
        self.store.check_place()

    def named(self, name: str) -> Self:
        """Return the factory of the state called `name`, which is its default prefix."""
        return self._over(self.store.named(name))

    def keyed(self, types: Sequence[str | None]) -> Self:
        """Return the factory over the store for keys with fields of these types."""
        return self._over(self.store.keyed(types))

    def at(self, prefix: str) -> MapStateFactory:
        """Return the factory of the state with another prefix, kept in the same way."""
        given = {each.name: getattr(self, each.name) for each in fields(MapStateFactory)}
        return MapStateFactory(**{**given, "store": self.store.at(prefix)})

    def _over(self, store: Store) -> Self:
        return self if store is self.store else replace(self, store=store)

    def of_kind(self, kind: StateType) -> Self:
        """Return the factory of the same states for another kind of values."""
        store = cast("Any", self.store)
        if "kind" in getattr(store, "__dataclass_fields__", ()):
            store = replace(store, kind=kind)
        return replace(self, kind=kind, store=store)

    def of_schema(self, schema: ValueSchema) -> Self:
        """Return the factory of the same states whose values have another form."""
        made = copy(self)  # not replace(): a subclass may have other parameters than its fields
        object.__setattr__(made, "schema", schema)
        return made

    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> StoredMap:
        """Open the store and return the state, for the calling process."""
        return self.makeMap()

    def makeMap(self) -> StoredMap:
        """Open the store and return the state, as the only partition."""
        key = self.store.snapshot_key if self.snapshot_key is None else self.snapshot_key
        backing = self.open()
        if self.written_by == "storm":
            return StormMap(self.kind, backing, self.serializer, key, self.schema)
        kind = self.makes or _MAPS[self.kind]
        made = kind(backing, self.serializer, key, self.schema)
        made.elsewhere = lambda prefix, kind: self.at(prefix).of_kind(kind).open()
        return made

    def located(self) -> MapStateFactory:
        """Return the factory of the state that has taken the place of this one; else itself."""
        if isinstance(self.store, OpenedStore) or self.written_by == "storm":
            return self
        with closing(self.makeMap()) as made:
            own = made.backing
            made.locate()
            if made.backing is own:
                return self
            return self.at(made.backing.prefix or "").of_kind(made.kind)

    def open(self) -> IBackingMap | LayeredMap:
        """Open the store and return its map with the layers that the options ask for."""
        store = self.store.open()
        backing: IBackingMap | LayeredMap = store
        if self.key_factory is not None:
            backing = NamedKeysMap(backing, self.key_factory)
        if self.max_get or self.max_put:
            backing = MicroBatchMap(backing, self.max_get, self.max_put)
        fenced = Ability.FENCED in abilities(store)
        if self.cache_size and self.hosted == "driver" and fenced:
            backing = CachedMap(backing, self.cache_size)
        return backing


def _show_options(options: Any, without: Sequence[str]) -> list[str]:
    """Return ``name=value`` for the fields of a dataclass that differ from their defaults."""
    if not is_dataclass(options):
        return []
    shown = [each for each in fields(options) if each.repr and each.name not in without]
    values = [(each, getattr(options, each.name)) for each in shown]
    return [
        f"{each.name}={value!r}"
        for each, value in values
        if each.name in ("host", "port") or value != _default(each)
    ]


def _default(option: Field[Any]) -> Any:
    return option.default if option.default_factory is MISSING else option.default_factory()


def other_kinds(
    opaque: Callable[P, MapStateFactory],
) -> tuple[Callable[P, MapStateFactory], Callable[P, MapStateFactory]]:
    """Return the functions that do as `opaque`, for the other two kinds."""

    @wraps(opaque, assigned=("__module__", "__annotations__"), updated=())
    def transactional(*arguments: P.args, **options: P.kwargs) -> MapStateFactory:
        """Return a factory of transactional map states: exact where replays are identical.

        The parameters are those of :func:`opaque`.
        """
        return opaque(*arguments, **options).of_kind(StateType.TRANSACTIONAL)

    @wraps(opaque, assigned=("__module__", "__annotations__"), updated=())
    def nonTransactional(*arguments: P.args, **options: P.kwargs) -> MapStateFactory:
        """Return a factory of plain map states: a replayed batch counts twice.

        The parameters are those of :func:`opaque`.
        """
        return opaque(*arguments, **options).of_kind(StateType.NON_TRANSACTIONAL)

    return transactional, nonTransactional
