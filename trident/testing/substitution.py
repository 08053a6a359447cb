"""What a tester's plan records of its steps, and stores in trouble."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Literal, Self, TypeVar

from trident.operations.interfaces import StateUpdater, TridentCollector
from trident.plan.nodes import DRPCNode, Node, StateDeclaration, StateUpdateNode
from trident.plan.plan import Plan
from trident.states.backing_map import Codec, IBackingMap, WrappedMap
from trident.states.errors import FailedException, StateError, StateUnavailableError
from trident.states.state import Batch, State, StateFactory
from trident.states.store import Store
from trident.states.values import StateType
from trident.tuples.fields import Fields

T = TypeVar("T")


def find_ends(plan: Plan) -> list[Node]:
    """The steps of batches whose tuples no other step takes."""
    taken = {parent for node in plan.nodes for parent in node.parents}
    return [
        node
        for node in plan.nodes
        if node not in taken
        and node.updates is None
        and not any(isinstance(root, DRPCNode) for root in node.roots)
        and plan.group_of(node) is not None
    ]


class Recorded:
    """What steps have emitted in the batch that was committed last."""

    def __init__(self) -> None:
        self.tuples: dict[Node, list[Any]] = {}

    def recorder(self, id: int, node: Node, copy: Node) -> Node:
        """Return a step that records what the copy of a node emits."""
        self.tuples[node] = []
        names = Fields(*copy.fields.names)
        factory = _RecordFactory(self.tuples[node])
        return StateUpdateNode(
            id=id,
            origin=replace(copy.origin, call="partitionPersist"),
            parents=(copy,),
            state=StateDeclaration(f"what step {node.id} emits", factory),
            inputs=names,
            updater=_Record(),
            outputs=Fields(),
        )

    def begin(self) -> None:
        """Forget the batch before."""
        for rows in self.tuples.values():
            rows.clear()


class _Record(StateUpdater["_Rows"]):
    def updateState(self, state: _Rows, tuples: Sequence[Any], collector: TridentCollector) -> None:
        state.pending.extend(tuple(each) for each in tuples)


class _Rows(State):
    kind = StateType.OPAQUE

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows
        self.pending: list[Any] = []

    def beginCommit(self, batch: Batch) -> None:
        self.pending = []

    def commit(self, batch: Batch) -> None:
        self._rows[:] = self.pending


@dataclass(frozen=True, eq=False)
class _RecordFactory(StateFactory):
    rows: list[Any]
    kind = StateType.OPAQUE
    hosted: Literal["driver", "executor"] = "driver"

    def makeState(self, *_: Any, **__: Any) -> State:
        return _Rows(self.rows)


def recorded_plan(copies: dict[Node, Node], watched: Iterable[Node], recorded: Recorded) -> Plan:
    """Return the plan of the copies, with a step for each watched node that records it."""
    nodes = list(copies.values())
    for node in watched:
        nodes.append(recorded.recorder(nodes[-1].id + 1, node, copies[node]))
    return Plan(tuple(nodes))


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


def _of(how: str, name: str) -> Any:
    """A method that calls the inner map's in one of the two ways of `TroubledMap`."""

    def method(self: TroubledMap, *given: Any) -> Any:
        return getattr(self, how)(getattr(self.inner, name), *given)

    return method


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
        return self._codec

    multiGet = _of("_arrived", "multiGet")
    multiGetVersioned = _of("_arrived", "multiGetVersioned")
    entries = _of("_arrived", "entries")
    getControl = _of("_arrived", "getControl")
    putControl = _of("_arrived", "putControl")
    putControls = _of("_arrived", "putControls")
    multiPut = _of("_write", "multiPut")
    multiPutFenced = _of("_write", "multiPutFenced")
    multiRemoveFenced = _of("_write", "multiRemoveFenced")
    multiPutVersioned = _of("_write", "multiPutVersioned")
    multiPutAt = _of("_write", "multiPutAt")
    multiAddFenced = _of("_write", "multiAddFenced")

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
        return replace(self, inner=self.inner.named(prefix))

    def open(self) -> IBackingMap:
        inner = self.inner.open()
        return TroubledMap(inner, self.trouble, self.codec or inner.codec)
