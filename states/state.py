"""What a state is, and the factory that makes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, Self

from trident.states.backing_map import IBackingMap
from trident.states.control import Control, ControlRecord
from trident.states.errors import StateError
from trident.states.values import StateType, Token

Batch = int | Token | ControlRecord
"""Tells a state which attempt of a batch it begins.

An int for a state that no topology updates: it writes its control record itself. A Token if the
store has the control record already: the state reads it. A ControlRecord, which tasks get with
their code: nothing is read.
"""


class State(ABC):
    """Something that batches change, and queries read.

    Made by a :class:`StateFactory` once for each partition in the process that updates it, and once
    in each process that queries it. Used by one thread at a time.
    """

    control: Control | None = None
    """The state's control record; None for a state without one, which can't be exact."""

    kind: StateType | None = None
    """How the state keeps its values, as its factory says; see `StateFactory.kind`."""

    names_attempts: bool = True
    """Whether it may store the attempt of a batch, so that the log has to remember the attempt."""

    @abstractmethod
    def beginCommit(self, batch: Batch) -> None:
        """Begin the updates of one attempt of a batch; older pending updates are dropped."""

    @abstractmethod
    def commit(self, batch: Batch) -> None:
        """Write the updates since ``beginCommit(batch)``.

        The batch itself is committed by the topology's log; with an int, by this call.
        """

    def check_single(self) -> None:
        """Raise StateError if Storm left entries without its single value.

        Called when an aggregate without groups takes over what Storm wrote.
        """

    def check_key(self) -> None:
        """Raise StateError if the single value has another key than this state gives it.

        Called at each start for an aggregate without groups that has run before.
        """

    def close(self) -> None:
        """Let go of connections; may be called twice. The default has none."""


class ReadOnlyState(State):
    """A state that can only be queried."""

    def beginCommit(self, batch: Batch) -> NoReturn:
        raise _read_only()

    def commit(self, batch: Batch) -> NoReturn:
        raise _read_only()


def _read_only() -> StateError:
    return StateError("this state is read-only; query it, and update the state it is a view of")


class StateFactory(ABC):
    """Makes a state, and has the facts that a topology needs before the state is made.

    For a state of your own only :meth:`makeState` has to be written. Each other member has a
    default that suits any state; an attribute of the class, or of the object, replaces it. A
    factory whose state is hosted by executors must pickle, because each task makes its own state.

    Examples
    --------
    >>> class Alerts(State):
    ...     def beginCommit(self, batch): ...
    ...     def commit(self, batch): ...
    >>> class AlertFactory(StateFactory):
    ...     hosted = "driver"
    ...     def makeState(self, conf=None, metrics=None, partitionIndex=0, numPartitions=1):
    ...         return Alerts()
    >>> factory = AlertFactory()
    >>> factory.label, factory.hosted, factory.kind
    ('AlertFactory', 'driver', None)
    """

    kind: StateType | None = None
    """How the state keeps its values, which decides what a topology guarantees of it.

    A state that is no map may say `StateType.OPAQUE` if the writes of an attempt no longer count
    when another attempt of its batch is committed, even one that writes nothing;
    `StateType.TRANSACTIONAL` if a batch that is written again, with the same tuples, counts
    once; and `StateType.NON_TRANSACTIONAL` if it counts twice. `State.kind` says the same. Only
    opaque states allow ``on_failure="dead-letter"``. A checkpoint keeps the kind: a start with
    another one is refused. None leaves the guarantee open.
    """

    hosted: Literal["driver", "executor"] = "executor"
    """Which process of Spark's updates the state.

    ``"executor"``: each task updates its partition through its own state, so the store must be one
    that all tasks reach. ``"driver"``: one thread of the driver's process updates one state with
    the tuples of all partitions, and it answers queries within batches; the factory is not sent to
    tasks. The local engine has one process, and makes one state in both cases.
    """

    identity: tuple[str, ...] | None = None
    """The place of the state: a topology refuses two states with the same identity.

    For a map it is (store, database, prefix). A state whose identity is None is never refused.
    """

    map_type: type[IBackingMap] | None = None
    """The class of the backing map, which has the map's abilities.

    None if the class is unknown before the map is opened, and for a state without a map.
    """

    max_keys: int = 0
    """How many keys the state keeps before it drops others; 0 for all."""

    shards: int | None = None
    """How many shards the store is divided into; None if any task may update any key.

    A key belongs to shard ``crc32(encoded key) % shards``, and all keys of a shard are updated by
    one task.
    """

    cache_left_out: str | None = None
    """Why the state has no cache though an option asks for one, for ``explain()``; else None."""

    @abstractmethod
    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> State:
        """Return the state of one partition, for the process that calls.

        The driver calls it once at each start, and each thread that asks queries once, as partition
        0 of 1; a task of Spark's calls it with its own partition.

        Parameters
        ----------
        conf : mapping, optional
            The configuration that operations are prepared with.
        metrics : object
            Storm's; always None.
        partitionIndex : int
            The partition of the update or query, from 0.
        numPartitions : int
            The number of partitions.
        """

    @property
    def label(self) -> str:
        """The factory's name in ``explain()``."""
        return type(self).__qualname__

    @property
    def opens(self) -> Callable[[], IBackingMap] | None:
        """The function that opens the backing map; None for a state without one.

        If it is annotated with the map's class, ``explain()`` can say what the map leaves open.
        """
        return None

    def named(self, name: str) -> Self:
        """Return the factory of the state called `name` in the topology: by default itself.

        A map's factory without a prefix takes the name for its prefix.
        """
        return self

    def keyed(self, types: Sequence[str | None]) -> Self:
        """Return the factory of a state whose keys have fields of these types; see `Store.keyed`.

        Called when the topology declares the keys of an aggregate's state. By default itself.
        """
        return self

    def check_place(self) -> None:
        """Raise UsageError if it is known without connecting that the store can't have the state.

        Called on the driver, once at each start, before anything is opened.
        """
