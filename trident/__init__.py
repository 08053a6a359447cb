"""Trident-style streams on Spark with external state that is exact.

Everything a user needs is here; a name is loaded when it is first used, so that importing the
package costs nothing and needs neither Spark nor any store's driver. The packages ``backends``,
``spark`` and ``states`` are loaded so too.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from trident import backends as backends
    from trident import spark as spark
    from trident import states as states
    from trident import testing as testing
    from trident import transactional as transactional
    from trident.api.assemblies import FirstN
    from trident.api.run import Run
    from trident.api.stream import Assembly, GroupedStream, Stream, TridentState
    from trident.api.topology import TridentTopology
    from trident.backends.memory import LRUMemoryMapState, MemoryMapState
    from trident.backends.state_spec import StateSpec
    from trident.backends.urls import state_from_url
    from trident.batch.adoption import Adoption
    from trident.batch.events import AttemptFailed, GroupEnded, GroupStarted, QueryEnded
    from trident.batch.progress import BatchProgress
    from trident.errors import (
        FailedException,
        GuaranteeWarning,
        OperationError,
        PlanError,
        TridentError,
    )
    from trident.operations.builtin import (
        Count,
        Debug,
        Equals,
        FilterNull,
        MapGet,
        Max,
        Min,
        Negate,
        SnapshotGet,
        Split,
        Sum,
        TupleCollectionGet,
    )
    from trident.operations.callables import native
    from trident.operations.interfaces import (
        Aggregator,
        CombinerAggregator,
        Consumer,
        CustomStreamGrouping,
        Filter,
        FlatMapFunction,
        Function,
        GroupedMultiReducer,
        MapFunction,
        MultiReducer,
        Operation,
        PlainFunction,
        QueryFunction,
        ReducerAggregator,
        StateUpdater,
        TridentCollector,
        TridentOperationContext,
    )
    from trident.operations.joining import JoinOutFieldsMode, JoinType
    from trident.operations.sending import KafkaStateUpdater
    from trident.operations.vectorised import vectorised
    from trident.server.asgi import DRPCApp
    from trident.server.client import DRPCClient
    from trident.server.limits import DRPCLimits
    from trident.server.server import DRPCServer
    from trident.spouts.classic import (
        ICommitterTransactionalSpout,
        IOpaquePartitionedTransactionalSpout,
        IPartitionedTransactionalSpout,
        ITransactionalSpout,
    )
    from trident.spouts.collector import SpoutCollector
    from trident.spouts.feeder import FeederBatchSpout
    from trident.spouts.fixed import FixedBatchSpout
    from trident.spouts.generator import GeneratorSpout
    from trident.spouts.interfaces import (
        BatchCoordinator,
        CommitterEmitter,
        Emitter,
        IBatchSpout,
        ICommitterTridentSpout,
        ITridentDataSource,
        ITridentSpout,
    )
    from trident.spouts.kafka import (
        DeadLetterTopic,
        FirstPollOffsetStrategy,
        KafkaRecord,
        KafkaSpout,
    )
    from trident.spouts.partitioned import (
        IOpaquePartitionedTridentSpout,
        IPartitionedTridentSpout,
        ISpoutPartition,
    )
    from trident.spouts.rich import IRichSpout, OutputFieldsDeclarer, SpoutOutputCollector
    from trident.spouts.socket_lines import SocketLinesSpout
    from trident.spouts.text_files import TextFileSpout
    from trident.state_service.client import StateClient
    from trident.states.backing_map import IBackingMap
    from trident.states.map_state import (
        ITupleCollection,
        MapState,
        ReadOnlyMapState,
        ReadOnlySnapshottable,
        Snapshottable,
    )
    from trident.states.maps import NonTransactionalMap, OpaqueMap, TransactionalMap
    from trident.states.state import State, StateFactory
    from trident.states.updaters import ValueUpdater
    from trident.states.values import Token
    from trident.tuples import TridentTuple
    from trident.tuples.fields import Fields
    from trident.windows.windows import (
        BaseWindow,
        Duration,
        SessionWindow,
        SlidingCountWindow,
        SlidingDurationWindow,
        TumblingCountWindow,
        TumblingDurationWindow,
    )

_HOMES = {
    "api.assemblies": "FirstN",
    "backends.state_spec": "StateSpec",
    "backends.urls": "state_from_url",
    "batch.adoption": "Adoption",
    "batch.progress": "BatchProgress",
    "operations.builtin": (
        "Count Debug Equals FilterNull MapGet Max Min Negate SnapshotGet Split Sum "
        "TupleCollectionGet"
    ),
    "operations.callables": "native",
    "errors": "FailedException GuaranteeWarning OperationError PlanError TridentError",
    "batch.events": "AttemptFailed GroupEnded GroupStarted QueryEnded",
    "server.asgi": "DRPCApp",
    "server.client": "DRPCClient",
    "server.limits": "DRPCLimits",
    "server.server": "DRPCServer",
    "tuples.fields": "Fields",
    "operations.interfaces": (
        "Aggregator CombinerAggregator Consumer CustomStreamGrouping Filter FlatMapFunction "
        "Function GroupedMultiReducer MapFunction MultiReducer Operation PlainFunction "
        "QueryFunction ReducerAggregator StateUpdater TridentCollector TridentOperationContext"
    ),
    "operations.joining": "JoinOutFieldsMode JoinType",
    "operations.sending": "KafkaStateUpdater",
    "windows.windows": (
        "BaseWindow Duration SessionWindow SlidingCountWindow SlidingDurationWindow "
        "TumblingCountWindow TumblingDurationWindow"
    ),
    "operations.vectorised": "vectorised",
    "api.run": "Run",
    "spouts.feeder": "FeederBatchSpout",
    "spouts.fixed": "FixedBatchSpout",
    "spouts.classic": (
        "ICommitterTransactionalSpout IOpaquePartitionedTransactionalSpout "
        "IPartitionedTransactionalSpout ITransactionalSpout"
    ),
    "spouts.collector": "SpoutCollector",
    "spouts.generator": "GeneratorSpout",
    "spouts.interfaces": (
        "BatchCoordinator CommitterEmitter Emitter IBatchSpout ICommitterTridentSpout "
        "ITridentDataSource ITridentSpout"
    ),
    "spouts.kafka": "DeadLetterTopic FirstPollOffsetStrategy KafkaRecord KafkaSpout",
    "spouts.partitioned": (
        "IOpaquePartitionedTridentSpout IPartitionedTridentSpout ISpoutPartition"
    ),
    "spouts.rich": "IRichSpout OutputFieldsDeclarer SpoutOutputCollector",
    "spouts.socket_lines": "SocketLinesSpout",
    "spouts.text_files": "TextFileSpout",
    "state_service.client": "StateClient",
    "states.backing_map": "IBackingMap",
    "states.map_state": (
        "ITupleCollection MapState ReadOnlyMapState ReadOnlySnapshottable Snapshottable"
    ),
    "states.maps": "NonTransactionalMap OpaqueMap TransactionalMap",
    "backends.memory": "LRUMemoryMapState MemoryMapState",
    "states.state": "State StateFactory",
    "states.updaters": "ValueUpdater",
    "states.values": "Token",
    "api.stream": "Assembly GroupedStream Stream TridentState",
    "api.topology": "TridentTopology",
    "tuples": "TridentTuple",
}
_PACKAGES = frozenset({"backends", "spark", "states", "testing", "transactional"})
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Adoption",
    "Aggregator",
    "Assembly",
    "AttemptFailed",
    "BaseWindow",
    "BatchCoordinator",
    "BatchProgress",
    "CombinerAggregator",
    "CommitterEmitter",
    "Consumer",
    "Count",
    "CustomStreamGrouping",
    "DRPCApp",
    "DRPCClient",
    "DRPCLimits",
    "DRPCServer",
    "DeadLetterTopic",
    "Debug",
    "Duration",
    "Emitter",
    "Equals",
    "FailedException",
    "FeederBatchSpout",
    "Fields",
    "Filter",
    "FilterNull",
    "FirstN",
    "FirstPollOffsetStrategy",
    "FixedBatchSpout",
    "FlatMapFunction",
    "Function",
    "GeneratorSpout",
    "GroupEnded",
    "GroupStarted",
    "GroupedMultiReducer",
    "GroupedStream",
    "GuaranteeWarning",
    "IBackingMap",
    "IBatchSpout",
    "ICommitterTransactionalSpout",
    "ICommitterTridentSpout",
    "IOpaquePartitionedTransactionalSpout",
    "IOpaquePartitionedTridentSpout",
    "IPartitionedTransactionalSpout",
    "IPartitionedTridentSpout",
    "IRichSpout",
    "ISpoutPartition",
    "ITransactionalSpout",
    "ITridentDataSource",
    "ITridentSpout",
    "ITupleCollection",
    "JoinOutFieldsMode",
    "JoinType",
    "KafkaRecord",
    "KafkaSpout",
    "KafkaStateUpdater",
    "LRUMemoryMapState",
    "MapFunction",
    "MapGet",
    "MapState",
    "Max",
    "MemoryMapState",
    "Min",
    "MultiReducer",
    "Negate",
    "NonTransactionalMap",
    "OpaqueMap",
    "Operation",
    "OperationError",
    "OutputFieldsDeclarer",
    "PlainFunction",
    "PlanError",
    "QueryEnded",
    "QueryFunction",
    "ReadOnlyMapState",
    "ReadOnlySnapshottable",
    "ReducerAggregator",
    "Run",
    "SessionWindow",
    "SlidingCountWindow",
    "SlidingDurationWindow",
    "SnapshotGet",
    "Snapshottable",
    "SocketLinesSpout",
    "Split",
    "SpoutCollector",
    "SpoutOutputCollector",
    "State",
    "StateClient",
    "StateFactory",
    "StateSpec",
    "StateUpdater",
    "Stream",
    "Sum",
    "TextFileSpout",
    "Token",
    "TransactionalMap",
    "TridentCollector",
    "TridentError",
    "TridentOperationContext",
    "TridentState",
    "TridentTopology",
    "TridentTuple",
    "TumblingCountWindow",
    "TumblingDurationWindow",
    "TupleCollectionGet",
    "ValueUpdater",
    "native",
    "state_from_url",
    "vectorised",
]


if not TYPE_CHECKING:  # to which any name, also one that is mistyped, would be there then

    def __getattr__(name):
        if name in _PACKAGES:
            return import_module(f"trident.{name}")
        if name not in _HOME_OF:
            from trident.api.absent_names import absent

            raise absent(name, __all__)
        value = getattr(import_module(f"trident.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    # Whoever lists a module takes all that it lists: help() should not fail for want of Spark.
    absent = {"spark"} if find_spec("pyspark") is None else set()
    return sorted({*__all__, *_PACKAGES, "__version__"} - absent)
