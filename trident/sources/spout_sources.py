"""Spouts of every interface, opened for a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from copy import deepcopy
from time import monotonic
from typing import Any

from trident.sources.partitioned_source import PartitionedSource
from trident.sources.source import Opening, SourceBatch, StreamSource, has_own_ready
from trident.spouts.classic import ClassicSpout, as_trident
from trident.spouts.interfaces import (
    BatchCoordinator,
    CommitterEmitter,
    Emitter,
    IBatchSpout,
    ICommitterTridentSpout,
    ITridentDataSource,
    ITridentSpout,
    check_derived,
)
from trident.spouts.partitioned import PartitionedSpout
from trident.spouts.rich import IRichSpout, SpoutOutputCollector
from trident.states.errors import FailedException
from trident.states.values import Token


class BatchSource(StreamSource):
    """An :class:`IBatchSpout`."""

    def __init__(self, opening: Opening, spout: IBatchSpout) -> None:
        super().__init__(opening, spout, spout, says_end=has_own_ready(spout))
        self._spout = spout
        spout.open(opening.conf, None)
        self.notifies = spout.whenReady(opening.listener)

    def _emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch:
        collector = self._collector()
        self._spout.emitBatch(token.txid, collector)
        return SourceBatch(collector.block())

    def success(self, token: Token) -> None:
        self._spout.ack(token.txid)

    def close(self) -> None:
        self._spout.close()


class TridentSource(StreamSource):
    """An :class:`ITridentSpout`: its coordinator and its emitter, both on the driver."""

    def __init__(self, opening: Opening, spout: ITridentSpout) -> None:
        stream, conf = opening.stream, opening.conf
        self._coordinator = spout.getCoordinator(stream, conf, None)
        check_derived(self._coordinator, BatchCoordinator, "BatchCoordinator", stream)
        with ExitStack() as undo:
            undo.callback(self._coordinator.close)
            super().__init__(opening, spout, self._coordinator, says_end=True)
            self.plans = spout.kind == "transactional"
            self.remembers = not self.plans
            self._emitter = spout.getEmitter(stream, conf, None)
            check_derived(self._emitter, Emitter, "Emitter", stream)
            if isinstance(spout, ICommitterTridentSpout):
                check_derived(self._emitter, CommitterEmitter, "CommitterEmitter", stream)
            elif isinstance(self._emitter, CommitterEmitter):  # batches of others may overlap
                check_derived(spout, ICommitterTridentSpout, "ICommitterTridentSpout", stream)
            undo.callback(self._emitter.close)
            self.notifies = self._coordinator.whenReady(opening.listener)
            undo.pop_all()

    def plan(self, txid: int, previous: Any) -> Any:
        decided = self._coordinator.initializeTransaction(txid, deepcopy(previous), None)
        return self._copied(decided)

    def _emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch:
        collector = self._collector()
        known = planned if self.plans else metadata
        following = self._emitter.emitBatch(token, known, collector)
        return SourceBatch(collector.block(), following)

    def committing(self, token: Token) -> None:
        if isinstance(self._emitter, CommitterEmitter):
            self._emitter.commit(token)

    def success(self, token: Token) -> None:
        self._emitter.success(token)
        self._coordinator.success(token.txid)

    def close(self) -> None:
        try:
            self._emitter.close()
        finally:
            self._coordinator.close()


class RichSource(StreamSource):
    """An :class:`IRichSpout`: its records are collected into batches, and acked by the batch."""

    follows_metadata = True

    def __init__(self, opening: Opening, spout: IRichSpout) -> None:
        super().__init__(opening, spout, None, says_end=False)
        self._spout = spout
        self._into = SpoutOutputCollector(f"the spout of {self.stream}", self.fields)
        self._pending: dict[int, list[Any]] = {}
        self._emitted_at = monotonic()
        self._committing: int | None = None
        spout.open(opening.conf, None, self._into)

    def _emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch:
        self._fail([txid for txid in self._pending if txid >= token.txid])
        self._committing = None
        self._emitted_at = monotonic()
        try:
            taken = -1
            while taken < self._into.emitted < self._spout.maxBatchSize:
                taken = self._into.emitted
                self._spout.nextTuple()
        finally:
            block, ids = self._into.take()
            if ids:
                self._pending[token.txid] = ids
        return SourceBatch(block)

    def committing(self, token: Token) -> None:
        """Fail an attempt that took longer than its messages live: their source may have given them
        up."""
        took, allowed = monotonic() - self._emitted_at, self._spout.messageTimeout
        if self._pending.get(token.txid) and took > allowed:
            raise FailedException(
                f"stream {self.stream!r}: the batch took {took:.1f} s, its messages time out after "
                f"{allowed:g} s (messageTimeout of {type(self._spout).__name__})"
            )
        self._committing = token.txid

    def success(self, token: Token) -> None:
        _call_for_each(self._spout.ack, self._pending.pop(token.txid, ()))

    def close(self) -> None:
        """Fail the messages that are not committed; those that may be are left to the source, as
        after a crash."""
        try:
            self._fail([txid for txid in self._pending if txid != self._committing])
        finally:
            self._spout.close()

    def _fail(self, txids: list[int]) -> None:
        _call_for_each(
            self._spout.fail, [each for txid in txids for each in self._pending.pop(txid)]
        )


def _call_for_each(call: Callable[[Any], None], messages: Sequence[Any]) -> None:
    """Call with every message, even if one call raises; then raise the first error."""
    failures = []
    for message in messages:
        try:
            call(message)
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def open_source(opening: Opening, spout: ITridentDataSource) -> StreamSource:
    """Return the source of a stream, its spout opened for one run."""
    if isinstance(spout, ClassicSpout):
        spout = as_trident(spout)
    if isinstance(spout, IRichSpout):
        return RichSource(opening, spout)
    if isinstance(spout, IBatchSpout):
        return BatchSource(opening, spout)
    if isinstance(spout, ITridentSpout):
        return TridentSource(opening, spout)
    if isinstance(spout, PartitionedSpout):
        return PartitionedSource(opening, spout)
    raise TypeError(f"stream {opening.stream!r}: {type(spout).__name__} is of no spout's interface")
