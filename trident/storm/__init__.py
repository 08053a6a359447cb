"""What ports of Storm's programs need: its spouts, their parts, and operations by class.

A plain callable, a built-in source or a window is simpler where a program begins with this library.
"""

from trident.api.stream import Assembly
from trident.operations.builtin import Debug, Equals, Negate, TupleCollectionGet
from trident.operations.interfaces import (
    Consumer,
    CustomStreamGrouping,
    GroupedMultiReducer,
    MultiReducer,
    Operation,
)
from trident.spouts.collector import SpoutCollector
from trident.spouts.interfaces import (
    BatchCoordinator,
    CommitterEmitter,
    Emitter,
    ICommitterTridentSpout,
    ITridentDataSource,
    ITridentSpout,
)
from trident.spouts.partitioned import (
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    ISpoutPartition,
)
from trident.spouts.rich import IRichSpout, OutputFieldsDeclarer, SpoutOutputCollector
from trident.windows.windows import BaseWindow

__all__ = [
    "Assembly",
    "BaseWindow",
    "BatchCoordinator",
    "CommitterEmitter",
    "Consumer",
    "CustomStreamGrouping",
    "Debug",
    "Emitter",
    "Equals",
    "GroupedMultiReducer",
    "ICommitterTridentSpout",
    "IOpaquePartitionedTridentSpout",
    "IPartitionedTridentSpout",
    "IRichSpout",
    "ISpoutPartition",
    "ITridentDataSource",
    "ITridentSpout",
    "MultiReducer",
    "Negate",
    "Operation",
    "OutputFieldsDeclarer",
    "SpoutCollector",
    "SpoutOutputCollector",
    "TupleCollectionGet",
]
