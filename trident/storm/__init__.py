"""What ports of Storm's programs need: its spouts, their parts, and operations by class.

A plain callable, a built-in source or a window is simpler where a program begins with this library.
"""

from trident.api.stream import Assembly as Assembly
from trident.operations.builtin import Debug as Debug
from trident.operations.builtin import Equals as Equals
from trident.operations.builtin import Negate as Negate
from trident.operations.builtin import TupleCollectionGet as TupleCollectionGet
from trident.operations.interfaces import Consumer as Consumer
from trident.operations.interfaces import CustomStreamGrouping as CustomStreamGrouping
from trident.operations.interfaces import GroupedMultiReducer as GroupedMultiReducer
from trident.operations.interfaces import MultiReducer as MultiReducer
from trident.operations.interfaces import Operation as Operation
from trident.spouts.collector import SpoutCollector as SpoutCollector
from trident.spouts.interfaces import BatchCoordinator as BatchCoordinator
from trident.spouts.interfaces import CommitterEmitter as CommitterEmitter
from trident.spouts.interfaces import Emitter as Emitter
from trident.spouts.interfaces import ICommitterTridentSpout as ICommitterTridentSpout
from trident.spouts.interfaces import ITridentDataSource as ITridentDataSource
from trident.spouts.interfaces import ITridentSpout as ITridentSpout
from trident.spouts.partitioned import (
    IOpaquePartitionedTridentSpout as IOpaquePartitionedTridentSpout,
)
from trident.spouts.partitioned import IPartitionedTridentSpout as IPartitionedTridentSpout
from trident.spouts.partitioned import ISpoutPartition as ISpoutPartition
from trident.spouts.rich import IRichSpout as IRichSpout
from trident.spouts.rich import OutputFieldsDeclarer as OutputFieldsDeclarer
from trident.spouts.rich import SpoutOutputCollector as SpoutOutputCollector
from trident.windows.windows import BaseWindow as BaseWindow

__all__ = sorted(name for name, found in vars().items() if isinstance(found, type))
