"""Spouts of transactional topologies, as streams of Trident."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.spouts.counting import count
from trident import Fields
from trident.batch.errors import BatchFailedError
from trident.testing import fail_at
from trident.transactional import (
    BaseOpaquePartitionedTransactionalSpout,
    BasePartitionedTransactionalSpout,
    BaseTransactionalSpout,
    ICommitterTransactionalSpout,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
)

WORDS = "a b a c a".split()
COUNTS = [3, 1, 1]


class Decided(ITransactionalSpout.Coordinator):
    def __init__(self) -> None:
        self.end = 0

    def isReady(self) -> bool:
        return self.end < len(WORDS)

    def initializeTransaction(self, txid: int, prevMetadata: Any) -> Any:
        start = prevMetadata[1] if prevMetadata else 0
        self.end = start + 2
        return [start, self.end]


class Emitting(ICommitterTransactionalSpout.Emitter):
    calls: ClassVar[list[Any]] = []

    def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
        self.calls.append(("emit", tx, coordinatorMeta))
        for word in WORDS[slice(*coordinatorMeta)]:
            collector.emit([word])

    def commit(self, tx: Any) -> None:
        self.calls.append(("commit", tx))

    def cleanupBefore(self, txid: int) -> None:
        self.calls.append(("cleanup", txid))


class Classic(ICommitterTransactionalSpout):
    def getCoordinator(self, conf: Any, context: Any) -> Decided:
        return Decided()

    def getEmitter(self, conf: Any, context: Any) -> Emitting:
        Emitting.calls.clear()
        return Emitting()

    def getOutputFields(self) -> Fields:
        return Fields(word=str)


def test_a_transactional_spout_emits_what_its_coordinator_decided(tmp_path: Path) -> None:
    with fail_at("after write", txid=2):
        assert count(tmp_path, Classic(), "word", ["a", "b", "c"]) == COUNTS
    emitted = [call[1:] for call in Emitting.calls if call[0] == "emit"]
    assert emitted == [
        *(((1, 0), [0, 2]), ((2, 0), [2, 4])),
        *(((2, 1), [2, 4]), ((3, 0), [4, 6])),
    ]


def test_a_committer_is_called_before_each_commit_and_cleans_up_after_it(tmp_path: Path) -> None:
    count(tmp_path, Classic(), "word", ["a"])
    assert [call for call in Emitting.calls if call[0] != "emit"] == [
        *(("commit", (1, 0)), ("cleanup", 2)),
        *(("commit", (2, 0)), ("cleanup", 3)),
        *(("commit", (3, 0)), ("cleanup", 4)),
    ]


class Numbered(IPartitionedTransactionalSpout):
    """Words dealt to two partitions."""

    def getCoordinator(self, conf: Any, context: Any) -> Any:
        return NumberedCoordinator()

    def getEmitter(self, conf: Any, context: Any) -> Any:
        return NumberedEmitter()

    def getOutputFields(self) -> Fields:
        return Fields(word=str)


class NumberedCoordinator(IPartitionedTransactionalSpout.Coordinator):
    emitted = 0

    def numPartitions(self) -> int:
        NumberedCoordinator.emitted += 1
        return 2

    def isReady(self) -> bool:
        return self.emitted < 9


class NumberedEmitter(IPartitionedTransactionalSpout.Emitter):
    again: ClassVar[list[Any]] = []

    def emitPartitionBatchNew(
        self, tx: Any, collector: Any, partition: int, lastPartitionMeta: Any
    ) -> int:
        place = partition if lastPartitionMeta is None else lastPartitionMeta + 2
        self._emit(collector, place)
        return place

    def emitPartitionBatch(
        self, tx: Any, collector: Any, partition: int, partitionMeta: Any
    ) -> None:
        self.again.append((partition, partitionMeta))
        self._emit(collector, partitionMeta)

    def _emit(self, collector: Any, place: int) -> None:
        for word in WORDS[place : place + 1]:
            collector.emit([word])


def test_numbered_partitions_are_emitted_again_as_they_were(tmp_path: Path) -> None:
    NumberedCoordinator.emitted = 0
    NumberedEmitter.again.clear()
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        count(tmp_path, Numbered(), "word", ["a"], retries=0)
    assert count(tmp_path, Numbered(), "word", ["a", "b", "c"]) == COUNTS
    assert NumberedEmitter.again == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("base", "spout"),
    [
        (BaseTransactionalSpout, lambda: Classic),
        (BasePartitionedTransactionalSpout, lambda: Numbered),
        (BaseOpaquePartitionedTransactionalSpout, lambda: Opaque),
    ],
)
def test_a_spout_derived_from_a_base_class_is_one_of_its_interface(
    tmp_path: Path, base: type, spout: Any
) -> None:
    NumberedCoordinator.emitted, OpaqueEmitter.done = 0, False
    derived = type("Derived", (spout(), base), {})
    assert count(tmp_path, derived(), "word", ["a", "b", "c"]) == COUNTS


class Opaque(IOpaquePartitionedTransactionalSpout):
    def getCoordinator(self, conf: Any, context: Any) -> Any:
        return Ready()

    def getEmitter(self, conf: Any, context: Any) -> Any:
        return OpaqueEmitter()

    def getOutputFields(self) -> Fields:
        return Fields(word=str)


class Ready(IOpaquePartitionedTransactionalSpout.Coordinator):
    def isReady(self) -> bool:
        return not OpaqueEmitter.done


class OpaqueEmitter(IOpaquePartitionedTransactionalSpout.Emitter):
    done = False

    def numPartitions(self) -> int:
        return 2

    def emitPartitionBatch(
        self, tx: Any, collector: Any, partition: int, lastPartitionMeta: Any
    ) -> int:
        place = partition if lastPartitionMeta is None else int(lastPartitionMeta)
        OpaqueEmitter.done = place >= len(WORDS)
        for word in WORDS[place : place + 1]:
            collector.emit([word])
        return place + 2


def test_opaque_numbered_partitions_go_on_where_they_were_committed(tmp_path: Path) -> None:
    OpaqueEmitter.done = False
    with fail_at("after write", txid=2):
        assert count(tmp_path, Opaque(), "word", ["a", "b", "c"]) == COUNTS
