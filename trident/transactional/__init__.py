"""Transactional topologies: bolts by batch, the API that Trident grew from, over the same plan."""

from trident.spouts.classic import (
    BaseOpaquePartitionedTransactionalSpout as BaseOpaquePartitionedTransactionalSpout,
)
from trident.spouts.classic import (
    BasePartitionedTransactionalSpout as BasePartitionedTransactionalSpout,
)
from trident.spouts.classic import BaseTransactionalSpout as BaseTransactionalSpout
from trident.spouts.classic import ICommitterTransactionalSpout as ICommitterTransactionalSpout
from trident.spouts.classic import (
    IOpaquePartitionedTransactionalSpout as IOpaquePartitionedTransactionalSpout,
)
from trident.spouts.classic import IPartitionedTransactionalSpout as IPartitionedTransactionalSpout
from trident.spouts.classic import ITransactionalSpout as ITransactionalSpout
from trident.transactional.bolts import BaseBasicBolt as BaseBasicBolt
from trident.transactional.bolts import BaseBatchBolt as BaseBatchBolt
from trident.transactional.bolts import BaseTransactionalBolt as BaseTransactionalBolt
from trident.transactional.bolts import BasicOutputCollector as BasicOutputCollector
from trident.transactional.bolts import BatchOutputCollector as BatchOutputCollector
from trident.transactional.bolts import BoltTuple as BoltTuple
from trident.transactional.bolts import IBasicBolt as IBasicBolt
from trident.transactional.bolts import IBatchBolt as IBatchBolt
from trident.transactional.bolts import ICommitter as ICommitter
from trident.transactional.bolts import TopologyContext as TopologyContext
from trident.transactional.bolts import TransactionAttempt as TransactionAttempt
from trident.transactional.builder import (
    TransactionalTopologyBuilder as TransactionalTopologyBuilder,
)
from trident.transactional.linear_drpc import LinearDRPCTopologyBuilder as LinearDRPCTopologyBuilder
from trident.transactional.linear_drpc import ReturnResults as ReturnResults
from trident.transactional.memory_spout import MemoryTransactionalSpout as MemoryTransactionalSpout

__all__ = sorted(name for name, found in vars().items() if isinstance(found, type))
