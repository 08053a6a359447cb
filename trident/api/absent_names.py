"""Names of Storm and Trident that the package `trident` lacks, and what to use instead."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec

_PACKAGES = (
    *("states", "errors", "backends", "server", "storm", "transactional", "testing"),
    *("batch.events", "spouts.kafka", "backends.memory"),
)
_KAFKA = "Use KafkaSpout.opaque(servers, topic) or .transactional(…) of trident.spouts.kafka."
_NAMES = {
    "Use trident.storm.Operation.": "BaseOperation",
    "Use trident.storm.MultiReducer.": "BaseMultiReducer",
    "Use trident.Function or trident.Filter.": "EachOperation",
    "Use stream.minBy() or maxBy().": "MinWithComparator MaxWithComparator",
    "A plain function does it.": "CountAsAggregator StringLength TrueFilter TuplifyArgs",
    "Use trident.errors.FailedException.": "ReportedFailedException",
    "A tuple is a list of values: collector.emit([word, 1]).": "Values",
    "Use trident.TridentTuple.": "Tuple",
    "Call start() of the topology: it runs in this process, or on a Spark session.": (
        "StormSubmitter LocalCluster StormTopology"
    ),
    "Options are arguments of topology.start(); Spark's are set where its session is made.": (
        "Config"
    ),
    "Ask run.drpc.execute(function, args), where run is what start() returns.": "LocalDRPC",
    "Use topology.newDRPCStream(function).": "DRPCSpout",
    "run.drpc.execute(function, args) returns the result.": "ReturnResultsReducer",
    "Write a step: stream.each(fields, function, outputs), a state for what is kept.": (
        "IRichBolt BaseRichBolt BaseWindowedBolt"
    ),
    "Use trident.TridentTopology, or trident.transactional for bolts by batch.": "TopologyBuilder",
    "Use trident.storm.IRichSpout.": "BaseRichSpout",
    "newStream() takes a trident.storm.IRichSpout as it is.": "RichSpoutBatchExecutor",
    "Use trident.FeederBatchSpout.": "FeederCommitterBatchSpout",
    "topology.start() does it.": "MasterBatchCoordinator",
    "The log does it: topology.start(checkpoint=…).": (
        "RotatingTransactionalState TransactionalState"
    ),
    _KAFKA: (
        "OpaqueTridentKafkaSpout TransactionalTridentKafkaSpout TridentKafkaConfig "
        "KafkaTridentSpoutOpaque KafkaTridentSpoutTransactional KafkaSpoutConfig "
        "KafkaTridentSpoutConfig KafkaTridentSpoutManager SpoutConfig KafkaConfig"
    ),
    f"Kafka is asked itself, no ZooKeeper. {_KAFKA}": "ZkHosts",
    "Use trident.backends.kafka.sink(…) with trident.KafkaStateUpdater.": (
        "TridentKafkaState TridentKafkaStateFactory TridentKafkaStateUpdater TridentKafkaUpdater "
        "KafkaBolt"
    ),
    'Use its URL, "redis://localhost:6379/0", or trident.backends.redis.opaque(…).': (
        "RedisMapState RedisClusterMapState RedisState RedisClusterState RedisStateUpdater "
        "RedisStateQuerier JedisPoolConfig JedisClusterConfig"
    ),
    'Use its URL, "hbase://localhost/table/family".': "HBaseMapState HBaseWindowsStoreFactory",
    'Use its URL, "memcached://localhost:11211".': "MemcachedState",
    "Write a trident.states.State that writes a file for each batch.": "HdfsState",
    "partitionPersist(trident.Rows(…)) writes tuples as rows of a table.": (
        "JdbcState JdbcStateFactory JdbcUpdater"
    ),
    "Use a store of trident.backends, or a map of two methods: trident.states.IBackingMap.": (
        "MongoMapState CassandraMapState"
    ),
    "persistentAggregate(state, aggregator, output) does it.": (
        "MapCombinerAggStateUpdater MapReducerAggStateUpdater CombinerAggStateUpdater "
        "ReducerAggStateUpdater"
    ),
    "Use trident.states.JSONSerializer, which is the default.": (
        "JSONNonTransactionalSerializer JSONTransactionalSerializer JSONOpaqueSerializer"
    ),
    "Use trident.states.MicroBatchMap.": "MicroBatchIBackingMap",
    "Leave it out: each map state does it.": "CachedBatchReadsMap",
    "Use trident.storm.BaseWindow.": "WindowConfig",
    "A window is kept in any opaque map, as trident.MemoryMapState.Factory().": (
        "WindowsStore WindowsStoreFactory InMemoryWindowsStoreFactory"
    ),
    "Use trident.spark.local_session().": "local_session",
}
"""The names that each advice is for."""
_BASES = "Function Filter Aggregator StateUpdater QueryFunction"
INSTEAD = {f"Base{name}": f"Use trident.{name}." for name in _BASES.split()} | {
    name: advice for advice, names in _NAMES.items() for name in names.split()
}
"""What to use instead, by name."""


def absent(name: str, known: Iterable[str]) -> Exception:
    """Return the AttributeError for a missing name; for ``from trident import`` an ImportError."""
    imported = sys._getframe(2).f_code.co_name == "_handle_fromlist"
    advice = _advice(name)
    if not advice and imported and find_spec(f"trident.{name}") is None:
        near = get_close_matches(name, known, 1)
        advice = f"Did you mean {near[0]!r}?" if near else ""
    if not advice:
        text = f"module 'trident' has no attribute {name!r}"
        return AttributeError(text, name=name, obj=sys.modules["trident"])
    if imported:
        return ImportError(f"cannot import name {name!r} from 'trident'. {advice}", name=name)
    text = f"module 'trident' has no attribute {name!r}. {advice}"
    return AttributeError(text, name=name, obj=None)  # else Python adds the nearest of our names


def _advice(name: str) -> str:
    if name in INSTEAD or name.startswith("_"):
        return INSTEAD.get(name, "")
    for package in _PACKAGES:
        module = import_module(f"trident.{package}")
        if name in module.__all__:
            return f"It is in trident.{package}."
    return ""
