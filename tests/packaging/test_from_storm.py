"""The page for those who come from Storm: it has every name of Trident, and claims no more than is
so."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

import trident
from tests.packaging.conftest import ROOT

PAGE = (ROOT / "docs" / "from-storm.md").read_text()

# What Trident has published, by the chapter that has to tell of it.
PUBLISHED = {
    "TridentTopology": """
        TridentTopology newStream newDRPCStream newStaticState multiReduce merge join
        setResourceDefaults setMasterCoordResources build JoinType JoinOutFieldsMode""",
    "Stream": """
        name getName parallelismHint setCPULoad setMemoryLoad addSharedMemory project each filter
        map flatMap peek groupBy partitionBy partition shuffle localOrShuffle global batchGlobal
        broadcast identityPartition applyAssembly partitionAggregate aggregate chainedAgg minBy min
        maxBy max stateQuery partitionPersist persistentAggregate tumblingWindow slidingWindow
        window toStream getOutputFields""",
    "GroupedStream": """
        name getGroupFields getOutputFields toStream chainedAgg aggregate persistentAggregate
        stateQuery each partitionAggregate aggPartition singleEmitPartitioner""",
    "TridentState": "newValuesStream parallelismHint setCPULoad setMemoryLoad addSharedMemory",
    "ChainedAggregatorDeclarer": "partitionAggregate aggregate chainEnd",
    "Operations": """
        Operation EachOperation Function Filter MapFunction FlatMapFunction Consumer Aggregator
        CombinerAggregator ReducerAggregator MultiReducer GroupedMultiReducer StateUpdater
        QueryFunction Assembly TridentCollector ValueUpdater BaseOperation BaseFunction BaseFilter
        BaseAggregator BaseMultiReducer BaseStateUpdater BaseQueryFunction TridentTuple Fields
        TridentOperationContext Count Sum Min Max MinWithComparator MaxWithComparator FirstN
        FilterNull Equals Negate Debug MapGet SnapshotGet TupleCollectionGet CountAsAggregator Split
        StringLength TrueFilter TuplifyArgs
        CustomStreamGrouping FailedException ReportedFailedException""",
    "State": """
        State ReadOnlyState ReadOnlyMapState MapState RemovableMapState ReadOnlySnapshottable
        Snapshottable ITupleCollection StateFactory StateSpec StateType Serializer IBackingMap
        TransactionalValue OpaqueValue NonTransactionalMap TransactionalMap OpaqueMap
        CachedBatchReadsMap CachedMap MicroBatchIBackingMap SnapshottableMap MemoryMapState
        LRUMemoryMapState MapCombinerAggStateUpdater MapReducerAggStateUpdater
        CombinerAggStateUpdater ReducerAggStateUpdater CombinerValueUpdater ReducerValueUpdater
        JSONNonTransactionalSerializer JSONTransactionalSerializer JSONOpaqueSerializer""",
    "Spouts": """
        ITridentDataSource IBatchSpout ITridentSpout BatchCoordinator Emitter ICommitterTridentSpout
        IPartitionedTridentSpout IOpaquePartitionedTridentSpout ISpoutPartition
        RichSpoutBatchExecutor FixedBatchSpout FeederBatchSpout FeederCommitterBatchSpout
        MasterBatchCoordinator TransactionAttempt RotatingTransactionalState""",
    "Connectors": """
        KafkaTridentSpoutTransactional KafkaTridentSpoutOpaque KafkaTridentSpoutConfig
        OpaqueTridentKafkaSpout TransactionalTridentKafkaSpout TridentKafkaConfig SpoutConfig
        FirstPollOffsetStrategy TridentKafkaState TridentKafkaStateFactory TridentKafkaStateUpdater
        RedisMapState RedisClusterMapState RedisState RedisStateUpdater RedisStateQuerier
        HBaseMapState MemcachedState HdfsState JdbcState MongoMapState CassandraMapState
        JedisPoolConfig JedisClusterConfig localCacheSize cacheSize globalKey keyFactory serializer
        dataTypeDescription expireIntervalSec expiration requestTimeoutMillis connectTimeoutMillis
        requestRetries maxMultiGetBatchSize tableName columnFamily mapMapper""",
    "Queries": "LocalDRPC DRPCClient ReturnResultsReducer",
    "Transactional topologies": """
        TransactionalTopologyBuilder IBatchBolt BaseBatchBolt BaseTransactionalBolt IBasicBolt
        BaseBasicBolt ICommitter setCommitterBolt ITransactionalSpout ICommitterTransactionalSpout
        IPartitionedTransactionalSpout IOpaquePartitionedTransactionalSpout
        MemoryTransactionalSpout LinearDRPCTopologyBuilder BaseTransactionalSpout
        BasePartitionedTransactionalSpout BaseOpaquePartitionedTransactionalSpout""",
    "Windows": """
        WindowConfig TumblingCountWindow SlidingCountWindow TumblingDurationWindow
        SlidingDurationWindow Duration WindowsStore WindowsStoreFactory InMemoryWindowsStoreFactory
        HBaseWindowsStoreFactory""",
}
PARTS = (
    "topology spout bolt grouping task executor worker tick Nimbus Supervisor ZooKeeper acker "
    "BaseRichBolt transactional.zookeeper.root TOPOLOGY_ACKER_EXECUTORS kryo"
)
PACKAGES = ("states", "backends", "transactional", "storm", "errors", "server", "spouts")
OURS = re.compile(rf"(?:(?:{'|'.join(PACKAGES)})(?:\.\w+)+|[A-Z]\w+\.\w+)(?:\(\w+=\))?")


@dataclass(frozen=True)
class Row:
    """A row of a table: what it tells of, what it says is there, and the rest."""

    theirs: tuple[str, ...]
    ours: str
    differs: str


def rows(chapter: str) -> list[Row]:
    found = re.search(rf"^## {chapter}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"the page has no chapter {chapter!r}"
    cells = [line.strip("|").split("|") for line in found[1].splitlines() if line[:1] == "|"]
    return [
        Row(tuple(re.findall(r"`(\w+)[^`]*`", theirs)), ours.strip(), differs.strip())
        for theirs, ours, differs in cells[2:]
    ]


def resolved(name: str) -> Any:
    """What stands under a name that the page uses: of the package, or one of its packages."""
    path, _, option = name.partition("(")
    first, *others = path.split(".")
    if first == "spouts":  # which is public in parts
        first, others = f"{first}.{others[0]}", others[1:]
    public = first.partition(".")[0] in PACKAGES
    there = import_module(f"trident.{first}") if public else getattr(trident, first)
    for part in others:
        try:
            there = getattr(there, part)
        except AttributeError:
            # given to each object: only its class tells of it
            assert inspect.isclass(there), name
            assert part in inspect.get_annotations(there), name
            return None
    if option:
        assert option.removesuffix("=)") in inspect.signature(there).parameters, name
    return there


@pytest.mark.parametrize("chapter", PUBLISHED)
def test_each_name_that_trident_published_is_told_of(chapter: str) -> None:
    told = {name for row in rows(chapter) for name in row.theirs}
    assert sorted({*PUBLISHED[chapter].split()} - told) == []


def test_each_part_of_storm_is_told_of() -> None:
    table = PAGE.partition("## The parts of Storm")[2].partition("\n## ")[0]
    firsts = " ".join(line.split("|")[1] for line in table.splitlines() if line[:1] == "|")
    assert [part for part in PARTS.split() if part not in firsts] == []


@pytest.mark.parametrize("chapter", ["The parts of Storm", *PUBLISHED])
def test_what_the_page_says_is_there_is_there(chapter: str) -> None:
    for row in rows(chapter):
        for name in re.findall(rf"`((?:{'|'.join(PACKAGES)}|[A-Z])[^`]*)`", row.ours):
            resolved(name)


def test_every_other_name_that_the_page_uses_is_there() -> None:
    spans = re.findall(r"`([^`\n]+)`", PAGE)
    settings = "transactional.zookeeper."  # of Storm's
    used = [span for span in spans if OURS.fullmatch(span) and not span.startswith(settings)]
    assert len(used) > 100
    for name in used:
        resolved(name)


@pytest.mark.parametrize("chapter", PUBLISHED)
def test_what_the_page_says_is_not_there_is_not(chapter: str) -> None:
    owner = getattr(trident, chapter, trident)
    owners = [owner] if inspect.isclass(owner) and chapter != "State" else [trident, trident.states]
    for row in rows(chapter):
        assert row.ours
        if row.ours == "none":
            assert row.differs, f"{row.theirs}: nothing says what to do instead"
            there = [name for name in row.theirs if any(hasattr(o, name) for o in owners)]
            assert there == [], f"the page says there is no {there}"


def test_each_url_of_a_state_is_one() -> None:
    urls = re.findall(r"`(\w[\w+]*://[^`]+)`", PAGE)
    assert len(urls) > 8
    for url in urls:
        trident.backends.state_from_url(url)


def test_its_topology_is_declared_as_it_says() -> None:
    code, _ = blocks("python")
    declared: dict[str, Any] = {}
    exec(code, declared)
    assert declared["counts"].name == "count"


def test_the_port_of_a_program_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    _, port = blocks("python")
    exec(port, {"__name__": "__main__"})
    assert [capsys.readouterr().out] == blocks("text")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
