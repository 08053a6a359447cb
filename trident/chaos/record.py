"""What the source holds: words that follow from a seed, and spouts over them.

The record needs no disk: every process makes the same words of the same seed. Where a run stands in
them is the topology's own log, as for any spout.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trident.operations.interfaces import TridentCollector
from trident.spouts.interfaces import BatchCoordinator, Emitter, ITridentSpout
from trident.states.values import Token
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class Record:
    """A number of words, made of a seed; pickles."""

    seed: str
    length: int
    different: int = 24

    @cached_property
    def words(self) -> tuple[str, ...]:
        choose = random.Random(self.seed)
        return tuple(f"w{choose.randrange(self.different)}" for _ in range(self.length))


class Words(ITridentSpout):
    """Emits a record, in batches of random sizes.

    An opaque one draws the size anew for each attempt, so that a batch comes back with fewer tuples
    or with more. A transactional one draws it for each batch, and its replays are the same.

    It emits the words before `end`; None for all of them.
    """

    def __init__(
        self, record: Record, most: int, seed: str, kind: str = "opaque", end: int | None = None
    ) -> None:
        self.kind = kind  # type: ignore[assignment,misc]
        self._part = _WordEmitter(record, most, seed, kind, record.length if end is None else end)

    def getCoordinator(
        self, txStateId: str, conf: Mapping[str, Any], context: Any
    ) -> BatchCoordinator:
        return _UntilDone(self._part)

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Emitter:
        return self._part

    def getOutputFields(self) -> Fields:
        return Fields(word=str)


class _WordEmitter(Emitter):
    def __init__(self, record: Record, most: int, seed: str, kind: str, end: int) -> None:
        self._record = record
        self._end = end
        self._most = most
        self._seed = seed
        self._kind = kind
        self.done = False

    def after(self, start: int, *drawn: object) -> int:
        """Return the end of a batch that begins at `start`."""
        size = random.Random(f"{self._seed} {drawn}").randint(1, self._most)
        end = max(start, min(start + size, self._end))
        self.done = end >= self._end
        return end

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        if self._kind == "transactional":
            start, end = metadata
            self.done = end >= self._end
        else:
            start = metadata or 0
            end = self.after(start, token.txid, token.attempt)
        for word in self._record.words[start:end]:
            collector.emit([word])
        return end


class _UntilDone(BatchCoordinator):
    def __init__(self, part: _WordEmitter) -> None:
        self._part = part

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        start = prevMetadata[1] if prevMetadata else 0
        return [start, self._part.after(start, txid)]

    def isReady(self, txid: int) -> bool:
        return not self._part.done
