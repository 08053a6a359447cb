"""Trident-style streams on Spark with external state that is exact.

What most programs need is here. What only some need is in packages beside: ``backends`` has the
stores, ``states`` what a state has to be, ``server`` what answers queries, ``errors`` all errors,
``testing`` the tester, ``spark`` a local session; ``storm`` and ``transactional`` have what ports
of Storm's programs need. Each public name is in one of them.

A name is loaded when it is first used, and so is a package: importing this one costs nothing and
needs neither Spark nor any store's driver.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from trident import backends as backends
    from trident import errors as errors
    from trident import server as server
    from trident import spark as spark
    from trident import states as states
    from trident import storm as storm
    from trident import testing as testing
    from trident import transactional as transactional
    from trident.api.assemblies import FirstN
    from trident.api.run import Run
    from trident.api.stream import GroupedStream, Stream, TridentState
    from trident.api.topology import TridentTopology
    from trident.backends.memory import MemoryMapState
    from trident.batch.adopt import Adopt
    from trident.batch.progress import BatchProgress
    from trident.client.drpc_client import DRPCClient
    from trident.client.state_client import StateClient
    from trident.operations.builtin import (
        Count,
        FilterNull,
        MapGet,
        Max,
        Min,
        SnapshotGet,
        Split,
        Sum,
    )
    from trident.operations.callables import native
    from trident.operations.interfaces import (
        Aggregator,
        CombinerAggregator,
        Filter,
        FlatMapFunction,
        Function,
        MapFunction,
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
    from trident.spouts.feeder import FeederBatchSpout
    from trident.spouts.fixed import FixedBatchSpout
    from trident.spouts.generator import GeneratorSpout
    from trident.spouts.interfaces import IBatchSpout
    from trident.spouts.socket_lines import SocketLinesSpout
    from trident.spouts.text_files import TextFileSpout
    from trident.tuples import TridentTuple
    from trident.tuples.fields import Fields
    from trident.windows.windows import (
        Duration,
        SessionWindow,
        SlidingCountWindow,
        SlidingDurationWindow,
        TumblingCountWindow,
        TumblingDurationWindow,
    )

_HOMES = {
    "api.assemblies": "FirstN",
    "api.run": "Run",
    "api.stream": "GroupedStream Stream TridentState",
    "api.topology": "TridentTopology",
    "backends.memory": "MemoryMapState",
    "batch.adopt": "Adopt",
    "batch.progress": "BatchProgress",
    "operations.builtin": "Count FilterNull MapGet Max Min SnapshotGet Split Sum",
    "operations.callables": "native",
    "operations.interfaces": (
        "Aggregator CombinerAggregator Filter FlatMapFunction Function MapFunction "
        "PlainFunction QueryFunction ReducerAggregator StateUpdater TridentCollector "
        "TridentOperationContext"
    ),
    "operations.joining": "JoinOutFieldsMode JoinType",
    "operations.sending": "KafkaStateUpdater",
    "operations.vectorised": "vectorised",
    "client.drpc_client": "DRPCClient",
    "spouts.feeder": "FeederBatchSpout",
    "spouts.fixed": "FixedBatchSpout",
    "spouts.generator": "GeneratorSpout",
    "spouts.interfaces": "IBatchSpout",
    "spouts.socket_lines": "SocketLinesSpout",
    "spouts.text_files": "TextFileSpout",
    "client.state_client": "StateClient",
    "tuples": "TridentTuple",
    "tuples.fields": "Fields",
    "windows.windows": (
        "Duration SessionWindow SlidingCountWindow SlidingDurationWindow TumblingCountWindow "
        "TumblingDurationWindow"
    ),
}
_PACKAGES = frozenset(
    {"backends", "errors", "server", "spark", "states", "storm", "testing", "transactional"}
)
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Adopt",
    "Aggregator",
    "BatchProgress",
    "CombinerAggregator",
    "Count",
    "DRPCClient",
    "Duration",
    "FeederBatchSpout",
    "Fields",
    "Filter",
    "FilterNull",
    "FirstN",
    "FixedBatchSpout",
    "FlatMapFunction",
    "Function",
    "GeneratorSpout",
    "GroupedStream",
    "IBatchSpout",
    "JoinOutFieldsMode",
    "JoinType",
    "KafkaStateUpdater",
    "MapFunction",
    "MapGet",
    "Max",
    "MemoryMapState",
    "Min",
    "PlainFunction",
    "QueryFunction",
    "ReducerAggregator",
    "Run",
    "SessionWindow",
    "SlidingCountWindow",
    "SlidingDurationWindow",
    "SnapshotGet",
    "SocketLinesSpout",
    "Split",
    "StateClient",
    "StateUpdater",
    "Stream",
    "Sum",
    "TextFileSpout",
    "TridentCollector",
    "TridentOperationContext",
    "TridentState",
    "TridentTopology",
    "TridentTuple",
    "TumblingCountWindow",
    "TumblingDurationWindow",
    "native",
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
