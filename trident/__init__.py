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

__version__ = "0.2.0"

if TYPE_CHECKING:
    from trident import backends as backends
    from trident import errors as errors
    from trident import server as server
    from trident import spark as spark
    from trident import states as states
    from trident import storm as storm
    from trident import testing as testing
    from trident import transactional as transactional
    from trident.api.assemblies import FirstN as FirstN
    from trident.api.fill import fill as fill
    from trident.api.run import Run as Run
    from trident.api.states_frame import states_frame as states_frame
    from trident.api.stream import GroupedStream as GroupedStream
    from trident.api.stream import Stream as Stream
    from trident.api.stream import TridentState as TridentState
    from trident.api.topology import TridentTopology as TridentTopology
    from trident.api.write_stream import writeStream as writeStream
    from trident.backends.memory import MemoryMapState as MemoryMapState
    from trident.backends.rows import Rows as Rows
    from trident.batch.adopt import Adopt as Adopt
    from trident.batch.progress import BatchProgress as BatchProgress
    from trident.client.drpc_client import DRPCClient as DRPCClient
    from trident.client.state_client import StateClient as StateClient
    from trident.operations.builtin import Count as Count
    from trident.operations.builtin import FilterNull as FilterNull
    from trident.operations.builtin import MapGet as MapGet
    from trident.operations.builtin import Max as Max
    from trident.operations.builtin import Min as Min
    from trident.operations.builtin import SnapshotGet as SnapshotGet
    from trident.operations.builtin import Split as Split
    from trident.operations.builtin import Sum as Sum
    from trident.operations.callables import native as native
    from trident.operations.interfaces import Aggregator as Aggregator
    from trident.operations.interfaces import CombinerAggregator as CombinerAggregator
    from trident.operations.interfaces import Filter as Filter
    from trident.operations.interfaces import FlatMapFunction as FlatMapFunction
    from trident.operations.interfaces import Function as Function
    from trident.operations.interfaces import MapFunction as MapFunction
    from trident.operations.interfaces import PlainFunction as PlainFunction
    from trident.operations.interfaces import QueryFunction as QueryFunction
    from trident.operations.interfaces import ReducerAggregator as ReducerAggregator
    from trident.operations.interfaces import StateUpdater as StateUpdater
    from trident.operations.interfaces import TridentCollector as TridentCollector
    from trident.operations.interfaces import TridentOperationContext as TridentOperationContext
    from trident.operations.joining import JoinOutFieldsMode as JoinOutFieldsMode
    from trident.operations.joining import JoinType as JoinType
    from trident.operations.sending import KafkaStateUpdater as KafkaStateUpdater
    from trident.operations.vectorised import vectorised as vectorised
    from trident.spouts.dead_letters import DeadLetterSpout as DeadLetterSpout
    from trident.spouts.feeder import FeederBatchSpout as FeederBatchSpout
    from trident.spouts.fixed import FixedBatchSpout as FixedBatchSpout
    from trident.spouts.generator import GeneratorSpout as GeneratorSpout
    from trident.spouts.interfaces import IBatchSpout as IBatchSpout
    from trident.spouts.socket_lines import SocketLinesSpout as SocketLinesSpout
    from trident.spouts.text_files import TextFileSpout as TextFileSpout
    from trident.tuples import TridentTuple as TridentTuple
    from trident.tuples.fields import Fields as Fields
    from trident.windows.windows import Duration as Duration
    from trident.windows.windows import SessionWindow as SessionWindow
    from trident.windows.windows import SlidingCountWindow as SlidingCountWindow
    from trident.windows.windows import SlidingDurationWindow as SlidingDurationWindow
    from trident.windows.windows import TumblingCountWindow as TumblingCountWindow
    from trident.windows.windows import TumblingDurationWindow as TumblingDurationWindow

_HOMES = {
    "api.assemblies": "FirstN",
    "api.fill": "fill",
    "api.run": "Run",
    "api.states_frame": "states_frame",
    "api.stream": "GroupedStream Stream TridentState",
    "api.topology": "TridentTopology",
    "api.write_stream": "writeStream",
    "backends.memory": "MemoryMapState",
    "backends.rows": "Rows",
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
    "spouts.dead_letters": "DeadLetterSpout",
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

__all__ = sorted(_HOME_OF)


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
