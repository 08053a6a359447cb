"""State that is exact: values, maps and the protocol that keeps them so."""

if __name__ != "trident.states":  # the same class must not exist twice
    raise ImportError("import trident.states, not states: the folder is only its source")

import logging

from trident.states.backing_map import Ability, Codec, IBackingMap, WrappedMap, abilities
from trident.states.checkpoint_store import CheckpointStore
from trident.states.control import Control, ControlRecord
from trident.states.expiry import KeepUntil
from trident.states.keys import CONTROL_KEY, decode_key, encode_key, encode_keys
from trident.states.map_state import (
    ITupleCollection,
    MapState,
    ReadOnlyMapState,
    ReadOnlySnapshottable,
    RemovableMapState,
    Snapshottable,
    SnapshottableMap,
    TupleCollectionMap,
)
from trident.states.maps.copying import copy_state
from trident.states.maps.factory import (
    MapStateFactory,
    NonTransactionalMap,
    OpaqueMap,
    TransactionalMap,
)
from trident.states.maps.reading import read_committed, read_latest
from trident.states.maps.storm import give_back
from trident.states.printable import PRINTABLE_RECORDS
from trident.states.schema import ValueSchema
from trident.states.serializers import JSONSerializer, PickleSerializer, Serializer
from trident.states.state import Batch, ReadOnlyState, State, StateFactory
from trident.states.store import Store
from trident.states.table.cache import CachedMap
from trident.states.table.split import MicroBatchMap
from trident.states.table.table import Counts, LayeredMap
from trident.states.updaters import (
    CombinerValueUpdater,
    PutUpdater,
    ReducerValueUpdater,
    ValueUpdater,
)
from trident.states.values import OpaqueValue, StateType, Token, TransactionalValue

__all__ = [
    "CONTROL_KEY",
    "Ability",
    "Batch",
    "CachedMap",
    "CheckpointStore",
    "Codec",
    "CombinerValueUpdater",
    "Control",
    "ControlRecord",
    "Counts",
    "IBackingMap",
    "ITupleCollection",
    "JSONSerializer",
    "KeepUntil",
    "LayeredMap",
    "MapState",
    "MapStateFactory",
    "MicroBatchMap",
    "NonTransactionalMap",
    "OpaqueMap",
    "OpaqueValue",
    "PickleSerializer",
    "PutUpdater",
    "ReadOnlyMapState",
    "ReadOnlySnapshottable",
    "ReadOnlyState",
    "ReducerValueUpdater",
    "RemovableMapState",
    "Serializer",
    "Snapshottable",
    "SnapshottableMap",
    "State",
    "StateFactory",
    "StateType",
    "Store",
    "Token",
    "TransactionalMap",
    "TransactionalValue",
    "TupleCollectionMap",
    "ValueSchema",
    "ValueUpdater",
    "WrappedMap",
    "abilities",
    "copy_state",
    "decode_key",
    "encode_key",
    "encode_keys",
    "give_back",
    "read_committed",
    "read_latest",
]

logging.getLogger("trident").addFilter(PRINTABLE_RECORDS)
