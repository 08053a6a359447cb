"""The topologies whose explanations are pinned."""

from __future__ import annotations

from typing import Any

from tests.api.topologies import (
    Both,
    ById,
    Column,
    Everything,
    Frame,
    LogFactory,
    Longest,
    Same,
    Tally,
    Write,
    as_they_are,
    by_length,
    sentences,
    word_count,
)
from trident.api.assemblies import FirstN
from trident.api.topology import TridentTopology
from trident.backends.memory import LRUMemoryMapState, MemoryMapState
from trident.backends.state_spec import StateSpec
from trident.operations.builtin import (
    Count,
    Debug,
    FilterNull,
    MapGet,
    Max,
    Negate,
    SnapshotGet,
    Split,
    Sum,
    TupleCollectionGet,
)
from trident.operations.callables import native
from trident.operations.joining import JoinType
from trident.operations.vectorised import vectorised
from trident.states.maps.factory import NonTransactionalMap, TransactionalMap
from trident.windows.windows import Duration, SessionWindow

memory = MemoryMapState.Factory


def word_count_with_queries() -> TridentTopology:
    topology = TridentTopology()
    stream = sentences(topology).name("text").parallelismHint(4)
    counts = word_count(stream).parallelismHint(2)
    (
        topology.newDRPCStream("words")
        .each("args", Split(), "word")
        .groupBy("word")
        .stateQuery(counts, "word", MapGet(), "count")
        .each("count", FilterNull())
        .aggregate("count", Sum(), "sum")
    )
    (
        topology.newDRPCStream("all")
        .broadcast()
        .stateQuery(counts, TupleCollectionGet(), "word, count")
        .project("word, count")
    )
    return topology


def native_word_count() -> TridentTopology:
    topology = TridentTopology()
    frame = Frame(Column("value", "string"), Column("time", "timestamp"))
    (
        topology.newStream("lines", frame, kind="transactional")
        .each("value", native("explode(split(value, ' '))"), "word")
        .filter(native("word <> ''"))
        .groupBy("word")
        .persistentAggregate(memory(), Count(), "count")
    )
    return topology


def every_step() -> TridentTopology:
    topology = TridentTopology()
    stream = sentences(topology)
    long = (
        stream.each("sentence", Same(), "copy")
        .each("copy", Negate(FilterNull()))
        .filter(Everything())
        .map(lambda id, sentence, copy: (id, sentence), "id long, text string")
        .flatMap(lambda id, text: [(id, text)])
        .peek(print)
        .each(Debug("seen"))
        .shuffle()
        .partitionAggregate("id", Tally(), "n long")
    )
    short = stream.batchGlobal().aggregate("id", Max(), "n")
    merged = topology.merge(long, short)
    total = merged.persistentAggregate(memory(), "n", Sum(), "total")
    total.newValuesStream().each("total", Same(), "again long").partitionPersist(
        memory(), "again", Write(), name="totals"
    )
    stream.global_().stateQuery(total, SnapshotGet(), "before")
    longest = stream.groupBy("id").persistentAggregate(
        StateSpec(memory(), 3), "sentence", Longest(), "longest"
    )
    topology.newDRPCStream("longest").map(int, "id long").stateQuery(
        longest, "id", MapGet(), "longest"
    )
    other = topology.newStaticState(LRUMemoryMapState.Factory(10), name="recent")
    topology.newDRPCStream("recent").stateQuery(other, "args", MapGet(), "value")
    return topology


def later_operations() -> TridentTopology:
    topology = TridentTopology()
    stream = sentences(topology)
    chosen = stream.partition(ById()).parallelismHint(3)
    least = chosen.localOrShuffle().parallelismHint(3).minBy("id").identityPartition()
    most = chosen.max(by_length)
    first = stream.applyAssembly(FirstN(10, "id", reverse=True))
    merged = topology.merge("n, text", least, most, first)
    merged.partitionPersist(memory(), "text", Write(), name="texts")
    stream.chainedAgg().aggregate(Count(), "n").aggregate("id", Max(), "most").chainEnd()
    stream.flatMap(vectorised(as_they_are), "id, text string").peek(print)
    chain = stream.groupBy("id").chainedAgg().aggregate("sentence", Longest(), "longest")
    chain.aggregate("id", Tally(), "tally").chainEnd()
    types = JoinType.mixed(JoinType.INNER, JoinType.OUTER, JoinType.OUTER)
    groups, others = stream.groupBy("id"), least.groupBy("id")
    topology.multiReduce("id", groups, "sentence", others, Both(), "a, b")
    keys = ["id", "id", "n"]
    topology.join([stream, least, merged], keys, "id, a, b, c", types).parallelismHint(2)
    return topology


def windows() -> TridentTopology:
    topology = TridentTopology()
    stream = sentences(topology)
    stream.slidingWindow(100, 10, memory(), Count(), "tens")
    stream.groupBy("sentence").tumblingWindow(Duration.hours(1), memory(), Count(), "hourly")
    visits = SessionWindow.of(Duration.minutes(30)).withTimestampField("id")
    visits = visits.withLag(Duration.seconds(5)).withLateness(Duration.days(1))
    made = stream.groupBy("sentence").window(visits, memory(), "id", Max(), "last", name="visits")
    made.project("sentence, windowEnd").partitionPersist(memory(), "windowEnd", Write())
    made.lateStream().peek(shown)
    return topology


def shown(id: int, sentence: str) -> None:
    raise AssertionError


def weak_guarantees() -> TridentTopology:
    topology = TridentTopology()
    store: Any = memory().store
    opaque = sentences(topology, "opaque")
    word_count(opaque, TransactionalMap.factory(store.open, name="a"), name="transactional")
    word_count(opaque, NonTransactionalMap.factory(store.open, name="b"), name="plain")
    unsure = Same()
    unsure.deterministic = False
    (
        topology.newStream("sure", Frame(Column("a", "string")), kind="transactional")
        .each("a", unsure, "b string")
        .groupBy("b")
        .persistentAggregate(
            TransactionalMap.factory(store.open, name="c"), Count(), "n", name="varying"
        )
    )
    lost = topology.newStream("lost", Frame(Column("a", "string")), kind="non-transactional")
    lost.groupBy("a").persistentAggregate(memory(), Count(), "m")
    lost.partitionPersist(LogFactory(), "a", Write(), name="log")
    return topology


def query_on_spark() -> TridentTopology:
    topology = TridentTopology()
    asked = topology.newDRPCStream("reach", engine="spark")
    frame = Frame(Column("url", "string"), Column("who", "string"), streaming=False)
    tweets = topology.newStaticStream(frame).filter(native("who <> ''"))
    joined = topology.join(asked, "args", tweets, "url", "url, who")
    joined.groupBy("who").aggregate(Count(), "times").aggregate(Count(), "reach")
    return topology


DECLARED = (
    word_count_with_queries,
    native_word_count,
    every_step,
    later_operations,
    windows,
    weak_guarantees,
    query_on_spark,
)
