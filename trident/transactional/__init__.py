"""Transactional topologies: bolts by batch, the API that Trident grew from, over the same plan."""

from trident.spouts.classic import (
    BaseOpaquePartitionedTransactionalSpout,
    BasePartitionedTransactionalSpout,
    BaseTransactionalSpout,
    ICommitterTransactionalSpout,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
)
from trident.transactional.bolts import (
    BaseBasicBolt,
    BaseBatchBolt,
    BaseTransactionalBolt,
    BasicOutputCollector,
    BatchOutputCollector,
    BoltTuple,
    IBasicBolt,
    IBatchBolt,
    ICommitter,
    TopologyContext,
    TransactionAttempt,
)
from trident.transactional.builder import TransactionalTopologyBuilder
from trident.transactional.linear_drpc import LinearDRPCTopologyBuilder, ReturnResults
from trident.transactional.memory_spout import MemoryTransactionalSpout

__all__ = [
    "BaseBasicBolt",
    "BaseBatchBolt",
    "BaseOpaquePartitionedTransactionalSpout",
    "BasePartitionedTransactionalSpout",
    "BaseTransactionalBolt",
    "BaseTransactionalSpout",
    "BasicOutputCollector",
    "BatchOutputCollector",
    "BoltTuple",
    "IBasicBolt",
    "IBatchBolt",
    "ICommitter",
    "ICommitterTransactionalSpout",
    "IOpaquePartitionedTransactionalSpout",
    "IPartitionedTransactionalSpout",
    "ITransactionalSpout",
    "LinearDRPCTopologyBuilder",
    "MemoryTransactionalSpout",
    "ReturnResults",
    "TopologyContext",
    "TransactionAttempt",
    "TransactionalTopologyBuilder",
]
