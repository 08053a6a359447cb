"""State that is exact: values, maps and the protocol that keeps them so."""

if __name__ != "trident.states":  # the same class must not exist twice
    raise ImportError("import trident.states, not states: the folder is only its source")

import logging

from trident.states.backing_map import Ability as Ability
from trident.states.backing_map import Codec as Codec
from trident.states.backing_map import IBackingMap as IBackingMap
from trident.states.backing_map import WrappedMap as WrappedMap
from trident.states.backing_map import abilities as abilities
from trident.states.checkpoint_store import CheckpointStore as CheckpointStore
from trident.states.control import Control as Control
from trident.states.control import ControlRecord as ControlRecord
from trident.states.expiry import KeepUntil as KeepUntil
from trident.states.keys import CONTROL_KEY as CONTROL_KEY
from trident.states.keys import decode_key as decode_key
from trident.states.keys import encode_key as encode_key
from trident.states.keys import encode_keys as encode_keys
from trident.states.map_state import ITupleCollection as ITupleCollection
from trident.states.map_state import MapState as MapState
from trident.states.map_state import ReadOnlyMapState as ReadOnlyMapState
from trident.states.map_state import ReadOnlySnapshottable as ReadOnlySnapshottable
from trident.states.map_state import RemovableMapState as RemovableMapState
from trident.states.map_state import Snapshottable as Snapshottable
from trident.states.map_state import SnapshottableMap as SnapshottableMap
from trident.states.map_state import TupleCollectionMap as TupleCollectionMap
from trident.states.maps.copying import copy_state as copy_state
from trident.states.maps.factory import MapStateFactory as MapStateFactory
from trident.states.maps.factory import NonTransactionalMap as NonTransactionalMap
from trident.states.maps.factory import OpaqueMap as OpaqueMap
from trident.states.maps.factory import TransactionalMap as TransactionalMap
from trident.states.maps.reading import read_committed as read_committed
from trident.states.maps.reading import read_latest as read_latest
from trident.states.maps.storm import give_back as give_back
from trident.states.printable import PRINTABLE_RECORDS
from trident.states.serializers import JSONSerializer as JSONSerializer
from trident.states.serializers import PickleSerializer as PickleSerializer
from trident.states.serializers import Serializer as Serializer
from trident.states.state import Batch as Batch
from trident.states.state import ReadOnlyState as ReadOnlyState
from trident.states.state import State as State
from trident.states.state import StateFactory as StateFactory
from trident.states.store import Store as Store
from trident.states.table.cache import CachedMap as CachedMap
from trident.states.table.split import MicroBatchMap as MicroBatchMap
from trident.states.table.table import Counts as Counts
from trident.states.table.table import LayeredMap as LayeredMap
from trident.states.updaters import CombinerValueUpdater as CombinerValueUpdater
from trident.states.updaters import PutUpdater as PutUpdater
from trident.states.updaters import ReducerValueUpdater as ReducerValueUpdater
from trident.states.updaters import ValueUpdater as ValueUpdater
from trident.states.values import OpaqueValue as OpaqueValue
from trident.states.values import StateType as StateType
from trident.states.values import Token as Token
from trident.states.values import TransactionalValue as TransactionalValue

logging.getLogger("trident").addFilter(PRINTABLE_RECORDS)
