"""What each state is worth, why, and which pairs warn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import pytest

from tests.api.topologies import (
    Column,
    Frame,
    LogFactory,
    Same,
    Write,
    sentences,
    word_count,
)
from trident.api.start_checks import warn_inexact
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import LRUMemoryMapState, MemoryMapState
from trident.errors import GuaranteeWarning
from trident.operations.builtin import Count, MapGet
from trident.operations.callables import native
from trident.plan.guarantee import Guarantee, guarantee
from trident.plan.nodes import Kind, StateUpdateNode
from trident.states.backing_map import IBackingMap
from trident.states.maps.factory import (
    MapStateFactory,
    NonTransactionalMap,
    OpaqueMap,
    TransactionalMap,
)
from trident.states.store import Store
from trident.states.values import StateType

STORE: Any = MemoryMapState.Factory().store
MAPS: Mapping[StateType, Any] = {
    StateType.OPAQUE: OpaqueMap.factory(STORE.open, name="opaque"),
    StateType.TRANSACTIONAL: TransactionalMap.factory(STORE.open, name="transactional"),
    StateType.NON_TRANSACTIONAL: NonTransactionalMap.factory(STORE.open, name="plain"),
}
KINDS: Mapping[StateType, Any] = {
    StateType.OPAQUE: OpaqueMap,
    StateType.TRANSACTIONAL: TransactionalMap,
}
LEVELS = {
    ("transactional", StateType.OPAQUE): "exactly once",
    ("transactional", StateType.TRANSACTIONAL): "exactly once",
    ("transactional", StateType.NON_TRANSACTIONAL): "at least once",
    ("opaque", StateType.OPAQUE): "exactly once",
    ("opaque", StateType.TRANSACTIONAL): "best effort",
    ("opaque", StateType.NON_TRANSACTIONAL): "at least once",
    ("non-transactional", StateType.OPAQUE): "at most once",
    ("non-transactional", StateType.TRANSACTIONAL): "best effort",
    ("non-transactional", StateType.NON_TRANSACTIONAL): "best effort",
}


def of(topology: TridentTopology, name: str) -> Guarantee:
    plan = topology.plan()
    (update,) = (
        node for node in plan.nodes if isinstance(node, StateUpdateNode) and node.state.name == name
    )
    return guarantee(plan, update)


def counted(stream: Stream, kept: StateType, name: str = "count") -> Any:
    return stream.groupBy("sentence").persistentAggregate(MAPS[kept], Count(), "count", name=name)


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("kept", list(StateType))
def test_the_level_follows_from_both_kinds(kind: Kind, kept: StateType) -> None:
    topology = TridentTopology()
    counted(sentences(topology, kind), kept)
    found = of(topology, "count")
    assert found.level == LEVELS[kind, kept]
    assert found.exact == (found.advice is None)
    assert found.why.startswith(f"{kind} stream, {kept.value} map")


def test_of_merged_streams_the_weakest_counts() -> None:
    topology = TridentTopology()
    one = sentences(topology, "transactional")
    other = topology.newStream("other", topology.plan().nodes[0].source, "opaque")  # type: ignore[attr-defined]
    counted(topology.merge(one, other), StateType.TRANSACTIONAL)
    assert of(topology, "count").level == "best effort"


def unsure(operation: Any) -> Any:
    operation.deterministic = False
    return operation


def static(stream: Stream, topology: TridentTopology) -> Stream:
    state = topology.newStaticState(MemoryMapState.Factory())
    return stream.stateQuery(state, "sentence", MapGet(), "x")


@pytest.mark.parametrize(
    ("lower", "why"),
    [
        (lambda s, t: s.each("id", unsure(Same()), "x"), "each(id, Same(), x) is not determ"),
        (lambda s, t: s.filter(unsure(lambda id, s: True)), "<lambda>) is not deterministic"),
        (lambda s, t: s.filter(native("rand() < 0.5", deterministic=False)), "is not determ"),
        (static, "reads a state that is static"),
    ],
)
def test_what_varies_makes_a_transactional_stream_opaque(lower: Any, why: str) -> None:
    topology = TridentTopology()
    counted(lower(sentences(topology), topology), StateType.TRANSACTIONAL)
    assert of(topology, "count").level == "best effort"
    assert why in of(topology, "count").why


@pytest.mark.parametrize(
    ("kept", "level"),
    [
        (StateType.OPAQUE, "exactly once"),
        (StateType.TRANSACTIONAL, "best effort"),
        (StateType.NON_TRANSACTIONAL, "best effort"),
    ],
)
def test_a_query_of_a_state_that_is_not_opaque_varies(kept: StateType, level: str) -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    read = counted(stream, kept, "read")
    asked = stream.stateQuery(read, "sentence", MapGet(), "x")
    asked.groupBy("x").persistentAggregate(
        TransactionalMap.factory(STORE.open, name="other"), Count(), "count"
    )
    assert of(topology, "count").level == level


def test_new_values_of_a_plain_map_vary() -> None:
    topology = TridentTopology()
    values = counted(sentences(topology), StateType.NON_TRANSACTIONAL, "plain").newValuesStream()
    values.groupBy("count").persistentAggregate(MAPS[StateType.TRANSACTIONAL], Count(), "n")
    assert "gives new values that a replay changes" in of(topology, "n").why


def test_a_state_of_ones_own_is_not_known_and_does_not_warn() -> None:
    topology = TridentTopology()
    sentences(topology).partitionPersist(LogFactory(), "id", Write(), name="log")
    found = of(topology, "log")
    assert (found.level, found.exact) == ("not known", True)
    warn_inexact(topology.plan())


def test_a_map_of_two_methods_tells_what_is_left_open() -> None:
    class Simple(IBackingMap):
        def multiGet(self, keys: Any) -> Any:
            return [None for _ in keys]

        def multiPut(self, keys: Any, values: Any) -> None: ...

    class Fenced(Simple):
        def multiPutFenced(self, keys: Any, values: Any, fence: bytes) -> bool:
            return True

    topology = TridentTopology()
    stream = sentences(topology)
    word_count(stream, OpaqueMap.factory(Simple), name="simple")
    word_count(stream, OpaqueMap.factory(Fenced), name="fenced")
    assert "Simple can't refuse a late write" in of(topology, "simple").why
    assert of(topology, "fenced").why == "transactional stream, opaque map"


class Plain(IBackingMap):
    """Two methods, and no more."""

    def multiGet(self, keys: Any) -> Any:
        return [None for _ in keys]

    def multiPut(self, keys: Any, values: Any) -> None: ...


class Opener:
    def __call__(self) -> Plain:
        return Plain()


@dataclass(frozen=True)
class PlainStore(Store):
    """A configuration of the user's own."""

    identity = ("plain", "", "")
    hosted = "executor"

    def named(self, prefix: str) -> PlainStore:
        return self

    def open(self) -> Plain:
        return Plain()


def open_plain(place: str = "") -> Plain:
    return Plain()


def why_of(factory: Any) -> str:
    topology = TridentTopology()
    word_count(sentences(topology), factory, name="made")
    assert of(topology, "made").why in topology.explain()
    return of(topology, "made").why


@pytest.mark.parametrize(
    "factory",
    [
        OpaqueMap.factory(Plain),
        OpaqueMap.factory(open_plain),
        OpaqueMap.factory(partial(open_plain, "here")),
        OpaqueMap.factory(Opener()),
        OpaqueMap.factory(Opener().__call__),
        MapStateFactory(PlainStore()),
    ],
)
def test_however_a_map_is_given_what_it_leaves_open_is_told(factory: Any) -> None:
    assert "Plain can't refuse a late write" in why_of(factory)


def open_some() -> IBackingMap:
    return Plain()


@pytest.mark.parametrize("open_map", [lambda: Plain(), open_some, partial(open_some)])
def test_a_function_that_does_not_tell_its_map_leaves_that_open(open_map: Any) -> None:
    why = why_of(OpaqueMap.factory(open_map))
    assert "makes can refuse a late write is not known (annotate what it returns)" in why


@pytest.mark.parametrize(
    "url",
    [
        *("memory:a", "sqlite:a.db", "redis://one/0", "redis://one/0?cache_size=9"),
        *("redis+cluster://one:1,two:2", "memcached://one:1", "hbase://one:9/table/family"),
        *("postgresql://one/shop", "postgresql://one/shop?values=bigint"),
    ],
)
def test_the_stores_that_come_along_leave_nothing_open(url: str) -> None:
    assert why_of(url) == "transactional stream, opaque map"


def test_an_inexact_pair_warns_with_one_that_would_be_exact() -> None:
    topology = TridentTopology()
    counted(sentences(topology, "opaque"), StateType.NON_TRANSACTIONAL)
    text = "state 'count' is at least once: opaque stream, non-transactional map; a replayed"
    with pytest.warns(GuaranteeWarning, match=text) as warned:
        warn_inexact(topology.plan())
    assert "Exact would be an opaque map" in str(warned[0].message)


def test_a_map_that_forgets_keys_is_not_exact() -> None:
    topology = TridentTopology()
    words = sentences(topology).groupBy("sentence")
    words.persistentAggregate(LRUMemoryMapState.Factory(1000), Count(), "count")
    found = of(topology, "count")
    assert found.level == "best effort"
    assert "keeps 1,000 keys and forgets the others" in found.why


def of_staged(kind: Kind, kept: StateType, max_pending: int, hosted: Any = "driver") -> Guarantee:
    """The guarantee where Structured Streaming makes the batches."""
    topology = TridentTopology()
    frame = Frame(Column("sentence", "string"))
    factory = KINDS[kept].factory(STORE.open, name="count", hosted=hosted)
    stream = topology.newStream("lines", frame, kind=kind).groupBy("sentence")
    stream.persistentAggregate(factory, Count(), "count", name="count")
    [update] = [node for node in topology.plan().nodes if isinstance(node, StateUpdateNode)]
    return guarantee(topology.plan(), update, max_pending)


def test_a_staged_batch_does_not_depend_on_its_sources_replay() -> None:
    staged = of_staged("opaque", StateType.TRANSACTIONAL, 2)
    assert staged.level == "exactly once"
    assert staged.why == "opaque stream whose batches are staged, transactional map"
    assert staged.advice is None


@pytest.mark.parametrize(
    "given",
    [
        ("opaque", StateType.TRANSACTIONAL, 1),
        ("opaque", StateType.TRANSACTIONAL, 2, "executor"),
        ("non-transactional", StateType.TRANSACTIONAL, 2),
    ],
)
def test_a_batch_that_is_not_staged_or_was_lost_before_depends_on_it(given: Any) -> None:
    assert of_staged(*given).level == "best effort"


def test_what_staging_promises_is_explained_and_is_no_warning() -> None:
    topology = TridentTopology()
    stream = topology.newStream("lines", Frame(Column("sentence", "string")), kind="opaque")
    factory = TransactionalMap.factory(STORE.open, name="count", hosted="driver")
    stream.groupBy("sentence").persistentAggregate(factory, Count(), "count")
    shown = topology.explain()
    assert "batches overlap if max_pending is given, and are staged" in shown
    assert "best effort: opaque stream, transactional map; " in shown
    assert "if max_pending is given, exactly once: opaque stream whose batches" in shown
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_inexact(topology.plan(), 2)
    with pytest.warns(GuaranteeWarning, match="best effort"):
        warn_inexact(topology.plan(), 1)
