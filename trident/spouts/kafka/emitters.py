"""Emitting partitions: behind the last batch, or exactly as an earlier attempt did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.errors import SourceUnavailableError
from trident.spouts.collector import SpoutCollector
from trident.spouts.kafka.coordinator import KafkaPartition
from trident.spouts.kafka.reader import Fetched, KafkaReader, OffsetOutOfRange, Place
from trident.spouts.kafka.rejected import KafkaDataLossError, rejecting
from trident.spouts.kafka.settings import KafkaSettings
from trident.spouts.partitioned import (
    OpaquePartitionEmitter,
    PartitionEmitter,
    TransactionalPartitionEmitter,
)
from trident.states.values import Token


class _KafkaEmitter(PartitionEmitter):
    """What emitters of both kinds do; may live in any process.

    The metadata of a partition: the offset at which its batch began, the one at which the next
    begins, how many records were between them, and the topic's id. If any, also what was lost and
    how many records did not decode.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._reader = KafkaReader(settings)
        self._rejected = rejecting(settings)

    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[KafkaPartition]:
        return sorted(allPartitionInfo, key=lambda each: each.place)

    def refreshPartitions(self, partitionResponsibilities: Sequence[Any]) -> None:
        self._reader.keep(each.place for each in partitionResponsibilities)

    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: Any, lastMetadata: Any
    ) -> Any:
        """Emit what follows the last batch; None if that is nothing, so no replay waits for it."""
        last = lastMetadata
        end, place = self._end_of(partition), partition.place
        if last is not None and (last["next"], last["topic"]) == (end, partition.topic_id):
            return None
        losses: list[str] = []
        start = self._start(partition, last, losses)
        fetched = Fetched([], start)
        while start != end:
            try:
                # If the end is before the start, a look at the start shows whether it was cut.
                until = end if start < end else start + 1
                fetched = self._reader.read(place, start, until, self._settings.max_records)
                break
            except OffsetOutOfRange:
                start = self._moved(partition, start, losses)
                fetched = Fetched([], start)
        said = {
            "first": start,
            "next": fetched.next,
            "records": len(fetched.messages),
            "topic": partition.topic_id,
        }
        if losses:
            said["lost"] = "; ".join(losses)
        rejected = self._emit(fetched.messages, collector)
        if rejected:
            said["skipped"] = rejected
        return said

    def close(self) -> None:
        try:
            self._rejected.close()
        finally:
            self._reader.close()

    def _end_of(self, partition: KafkaPartition) -> int:
        if partition.end is None:
            raise SourceUnavailableError(
                f"Kafka at {self._settings.servers}, {partition.getId()}", partition.away
            )
        return partition.end

    def _start(self, partition: KafkaPartition, last: Any, losses: list[str]) -> int:
        if last is None:
            assert partition.begin is not None
            return partition.begin
        if last["topic"] == partition.topic_id:
            return int(last["next"])
        problem = f"the topic was deleted and made anew, when it was read to offset {last['next']}"
        losses.append(self._lose(partition.place, problem))
        return self._reader.bounds(partition.place)[0]

    def _moved(self, partition: KafkaPartition, start: int, losses: list[str]) -> int:
        """Where to go on when `start` is out of range."""
        place = partition.place
        low, high = self._reader.bounds(place)
        if start < low:
            problem = f"offsets {start} to {low - 1} were deleted before they were read"
            losses.append(self._lose(place, problem))
            return low
        if start > high:
            problem = f"it ends at offset {high} and was read to {start}: its end was lost"
            losses.append(self._lose(place, problem))
            # Without ids of topics this may as well be another one of that name.
            return low if partition.topic_id is None else high
        return start

    def _lose(self, place: Place, problem: str) -> str:
        if self._settings.fail_on_data_loss:
            raise KafkaDataLossError(*place, problem)
        return problem

    def _emit(self, messages: Sequence[Any], collector: SpoutCollector) -> int:
        """Emit records; return how many did not decode."""
        if not messages:
            return 0
        self._settings.translation.emit(messages, collector, self._rejected.take)
        return self._rejected.settle()


class OpaqueKafkaEmitter(_KafkaEmitter, OpaquePartitionEmitter):
    """Goes on behind the last committed batch of each partition."""

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: Any, lastMetadata: Any
    ) -> Any:
        return self.emitPartitionBatchNew(tx, collector, partition, lastMetadata)


class TransactionalKafkaEmitter(_KafkaEmitter, TransactionalPartitionEmitter):
    """Emits a batch again from the offsets that the log has of it."""

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: Any, metadata: Any
    ) -> None:
        first, following, count = metadata["first"], metadata["next"], metadata["records"]
        if not count:
            return
        self._end_of(partition)
        place = partition.place
        batch = f"of the {count} records from offset {first} to {following - 1}, which are to be "
        batch += "emitted again,"
        if metadata["topic"] != partition.topic_id:
            self._lose(place, f"{batch} none is left: the topic was deleted and made anew")
            return
        try:
            messages = self._reader.read_exactly(place, first, following)
        except OffsetOutOfRange:
            low, high = self._reader.bounds(place)
            self._lose(place, f"{batch} only those from offset {low} to {high - 1} are left")
            start = max(low, first)
            following = min(high, following)
            messages = []
            if start < following:
                messages = self._reader.read_exactly(place, start, following)
        if len(messages) != count:
            self._lose(place, f"{batch} only {len(messages)} are left")
        self._emit(messages, collector)
