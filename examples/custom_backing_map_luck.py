"""The bad luck of `custom_backing_map.py`: something happens to a write, a batch changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trident import Fields, IBatchSpout
from trident.operations.interfaces import TridentCollector
from trident.states import IBackingMap, WrappedMap


class Unlucky(WrappedMap):
    """A map to which something happens whenever a write is about to arrive."""

    def __init__(
        self,
        inner: IBackingMap,
        happens: Callable[[Sequence[bytes], Sequence[bytes]], None],
    ) -> None:
        super().__init__(inner)
        self.happens = happens

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self.happens(keys, values)
        self.inner.multiPut(keys, values)

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        self.happens(keys, values)
        return self.inner.multiPutFenced(keys, values, fence)


class Queue(IBatchSpout):
    """Gives two lines a batch; one that is tried again has one of them, the other comes later."""

    kind = "opaque"

    def __init__(self, lines: Sequence[str]) -> None:
        self.waiting = list(lines)
        self.given: dict[int, list[str]] = {}

    def isReady(self, batchId: int) -> bool:
        return bool(self.waiting)

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        self.given[batchId] = self.waiting[1 if batchId in self.given else 0 : 2]
        print(f"  batch {batchId}: {', '.join(self.given[batchId])}")
        for line in self.given[batchId]:
            collector.emit([line])

    def ack(self, batchId: int) -> None:
        for line in self.given.pop(batchId, []):
            self.waiting.remove(line)

    def getOutputFields(self) -> Fields:
        return Fields(line=str)
