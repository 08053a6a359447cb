"""Every call that Trident published is there, or tells what to use in its place."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping

import pytest

import trident
from tests.api.topologies import sentences, word_count
from trident.api.stream import (
    ChainedAggregatorDeclarer,
    ChainedFullAggregatorDeclarer,
    ChainedPartitionAggregatorDeclarer,
    GroupedStream,
    Stream,
    TridentState,
)
from trident.api.topology import TridentTopology
from trident.operations.absent_calls import ABSENT
from trident.operations.emitted import ListCollector
from trident.operations.interfaces import TridentCollector, TridentOperationContext
from trident.tuples import TridentTuple

PUBLISHED: Mapping[type, str] = {
    TridentTopology: (
        "newStream newDRPCStream newStaticState multiReduce merge join setResourceDefaults "
        "setMasterCoordResources build"
    ),
    Stream: (
        "name getName parallelismHint setCPULoad setMemoryLoad addSharedMemory project each filter "
        "map flatMap peek groupBy partitionBy partition shuffle localOrShuffle global batchGlobal "
        "broadcast identityPartition applyAssembly partitionAggregate aggregate chainedAgg minBy "
        "min maxBy max stateQuery partitionPersist persistentAggregate toStream getOutputFields"
    ),
    GroupedStream: (
        "name getGroupFields getOutputFields toStream chainedAgg aggregate persistentAggregate "
        "stateQuery each partitionAggregate aggPartition singleEmitPartitioner"
    ),
    TridentState: "newValuesStream parallelismHint setCPULoad setMemoryLoad addSharedMemory",
    ChainedAggregatorDeclarer: "aggregate partitionAggregate chainEnd",
    ChainedFullAggregatorDeclarer: "aggregate partitionAggregate chainEnd",
    ChainedPartitionAggregatorDeclarer: "aggregate partitionAggregate chainEnd",
    TridentCollector: "emit flush reportError",
    TridentOperationContext: (
        "makeProjectionFactory numPartitions getPartitionIndex registerMetric registerTimer "
        "registerHistogram registerMeter registerCounter registerGauge registerMetricSet"
    ),
    TridentTuple: (
        "getValue getString getInteger getLong getBoolean getShort getByte getDouble getFloat "
        "getBinary getValueByField getStringByField getIntegerByField getLongByField "
        "getBooleanByField getShortByField getByteByField getDoubleByField getFloatByField "
        "getBinaryByField size contains getFields fieldIndex select getValues"
    ),
}
CALLS = [(kind, call) for kind, calls in PUBLISHED.items() for call in calls.split()]


@pytest.mark.parametrize(("kind", "call"), CALLS)
def test_a_call_is_there_or_tells_of_another(kind: type, call: str) -> None:
    assert hasattr(kind, call) != (call in ABSENT.get(kind.__name__, ()))


def test_nothing_else_is_told_of() -> None:
    named = {(kind.__name__, call) for kind, call in CALLS}
    assert {(kind, call) for kind, calls in ABSENT.items() for call in calls} <= named


def test_the_error_says_what_to_write() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    with pytest.raises(AttributeError, match=r"no attribute 'build'\. Start the topology with"):
        topology.build()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'Stream' .* 'setCPULoad'\. Resources belong to the"):
        stream.setCPULoad(3)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="spark.executor.memory"):
        word_count(stream).setMemoryLoad(3)  # type: ignore[attr-defined]
    chain = stream.chainedAgg().aggregate(trident.Count(), "n")
    with pytest.raises(AttributeError, match="A chain has calls of one sort only"):
        chain.partitionAggregate(trident.Count(), "m")  # type: ignore[attr-defined]


def test_a_subclass_tells_of_it_too() -> None:
    with pytest.raises(AttributeError, match=r"'ListCollector' .* 'reportError'\. Raise the error"):
        ListCollector("f", 1).reportError(ValueError())  # type: ignore[attr-defined]


def test_what_nobody_published_is_just_absent() -> None:
    stream = sentences(TridentTopology())
    assert not hasattr(stream, "seperate")
    with pytest.raises(AttributeError, match="no attribute 'seperate'$"):
        stream.seperate()  # type: ignore[attr-defined]


def test_a_context_is_copied_and_pickled() -> None:
    context = TridentOperationContext(1, 2)
    assert copy.deepcopy(context) == pickle.loads(pickle.dumps(context)) == context
