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
_START = "Call start() of the topology: it runs in this process, or on a Spark session."
_CONFIG = "Options are arguments of topology.start(); Spark's are set where its session is made."
_KAFKA = "Use KafkaSpout.opaque(servers, topic) or .transactional(…) of trident.spouts.kafka."
_KAFKA_SINK = "Use trident.backends.kafka.sink(…) with trident.KafkaStateUpdater."
_REDIS = 'Use its URL, "redis://localhost:6379/0", or trident.backends.redis.opaque(…).'
_KEPT = "persistentAggregate(state, aggregator, output) does it."
_JSON = "Use trident.states.JSONSerializer, which is the default."
_DATABASE = "Use a store of trident.backends, or a map of two methods: trident.states.IBackingMap."
_ROWS = "partitionPersist(trident.Rows(…)) writes tuples as rows of a table."
_BASES = "Function Filter Aggregator StateUpdater QueryFunction"
_STEPS = "Write a step: stream.each(fields, function, outputs), a state for what is kept."

INSTEAD: dict[str, str] = {
    **{f"Base{name}": f"Use trident.{name}." for name in _BASES.split()},
    **{f"Base{name}": f"Use trident.storm.{name}." for name in ("Operation", "MultiReducer")},
    "EachOperation": "Use trident.Function or trident.Filter.",
    **dict.fromkeys(("MinWithComparator", "MaxWithComparator"), "Use stream.minBy() or maxBy()."),
    **dict.fromkeys(
        ("CountAsAggregator", "StringLength", "TrueFilter", "TuplifyArgs"),
        "A plain function does it.",
    ),
    "ReportedFailedException": "Use trident.errors.FailedException.",
    "Values": "A tuple is a list of values: collector.emit([word, 1]).",
    "Tuple": "Use trident.TridentTuple.",
    **dict.fromkeys(("StormSubmitter", "LocalCluster", "StormTopology"), _START),
    "Config": _CONFIG,
    "LocalDRPC": "Ask run.drpc.execute(function, args), where run is what start() returns.",
    "DRPCSpout": "Use topology.newDRPCStream(function).",
    "ReturnResultsReducer": "run.drpc.execute(function, args) returns the result.",
    **dict.fromkeys(("IRichBolt", "BaseRichBolt", "BaseWindowedBolt"), _STEPS),
    "TopologyBuilder": "Use trident.TridentTopology, or trident.transactional for bolts by batch.",
    "BaseRichSpout": "Use trident.storm.IRichSpout.",
    "RichSpoutBatchExecutor": "newStream() takes a trident.storm.IRichSpout as it is.",
    "FeederCommitterBatchSpout": "Use trident.FeederBatchSpout.",
    "MasterBatchCoordinator": "topology.start() does it.",
    **dict.fromkeys(
        ("RotatingTransactionalState", "TransactionalState"),
        "The log does it: topology.start(checkpoint=…).",
    ),
    **dict.fromkeys(
        (
            *("OpaqueTridentKafkaSpout", "TransactionalTridentKafkaSpout", "TridentKafkaConfig"),
            *("KafkaTridentSpoutOpaque", "KafkaTridentSpoutTransactional", "KafkaSpoutConfig"),
            *("KafkaTridentSpoutConfig", "KafkaTridentSpoutManager", "SpoutConfig", "KafkaConfig"),
        ),
        _KAFKA,
    ),
    "ZkHosts": f"Kafka is asked itself, no ZooKeeper. {_KAFKA}",
    **dict.fromkeys(
        (
            *("TridentKafkaState", "TridentKafkaStateFactory", "TridentKafkaStateUpdater"),
            *("TridentKafkaUpdater", "KafkaBolt"),
        ),
        _KAFKA_SINK,
    ),
    **dict.fromkeys(
        (
            *("RedisMapState", "RedisClusterMapState", "RedisState", "RedisClusterState"),
            *("RedisStateUpdater", "RedisStateQuerier", "JedisPoolConfig", "JedisClusterConfig"),
        ),
        _REDIS,
    ),
    "HBaseMapState": 'Use its URL, "hbase://localhost/table/family".',
    "HBaseWindowsStoreFactory": 'Use its URL, "hbase://localhost/table/family".',
    "MemcachedState": 'Use its URL, "memcached://localhost:11211".',
    "HdfsState": "Write a trident.states.State that writes a file for each batch.",
    **dict.fromkeys(("JdbcState", "JdbcStateFactory", "JdbcUpdater"), _ROWS),
    **dict.fromkeys(("MongoMapState", "CassandraMapState"), _DATABASE),
    **dict.fromkeys(
        (
            *("MapCombinerAggStateUpdater", "MapReducerAggStateUpdater"),
            *("CombinerAggStateUpdater", "ReducerAggStateUpdater"),
        ),
        _KEPT,
    ),
    **dict.fromkeys(
        (
            *("JSONNonTransactionalSerializer", "JSONTransactionalSerializer"),
            "JSONOpaqueSerializer",
        ),
        _JSON,
    ),
    "MicroBatchIBackingMap": "Use trident.states.MicroBatchMap.",
    "CachedBatchReadsMap": "Leave it out: each map state does it.",
    "WindowConfig": "Use trident.storm.BaseWindow.",
    **dict.fromkeys(
        ("WindowsStore", "WindowsStoreFactory", "InMemoryWindowsStoreFactory"),
        "A window is kept in any opaque map, as trident.MemoryMapState.Factory().",
    ),
    "local_session": "Use trident.spark.local_session().",
}
"""What to use instead, by name."""


def absent(name: str, known: Iterable[str]) -> Exception:
    """The AttributeError, or for ``from trident import`` an ImportError, of a name that is not
    there."""
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
