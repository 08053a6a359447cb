"""Spouts of either interface, as the spout loop drives them on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from trident.operations.emitted import ListCollector, Row
from trident.spouts.interfaces import IBatchSpout, ITridentSpout, SpoutKind
from trident.states.values import Token

Spout = IBatchSpout | ITridentSpout


class Source(ABC):
    """One stream's spout during one run.

    Parameters
    ----------
    stream : str
        The stream's id.
    spout : IBatchSpout or ITridentSpout
        Its spout.
    """

    plans = False
    """Whether a batch's content is decided and logged before it is emitted."""
    remembers = False
    """Whether an emission says what the next one needs."""
    notifies = False
    """Whether the listener is told of what is ready; else the source is polled."""

    def __init__(self, stream: str, spout: Spout) -> None:
        self.stream = stream
        self._width = len(spout.getOutputFields())

    def emit(self, token: Token, metadata: Any) -> tuple[list[Row], Any]:
        """Return the tuples of one attempt, and what the next batch needs."""
        collector = ListCollector(f"the spout of {self.stream}", self._width)
        remembered = self._emit(token, metadata, collector)
        return collector.rows, remembered

    @abstractmethod
    def _emit(self, token: Token, metadata: Any, collector: ListCollector) -> Any: ...

    @abstractmethod
    def is_ready(self, txid: int) -> bool:
        """Return whether there is a batch now."""

    def has_nothing(self, txid: int) -> bool:
        """Return whether the spout says that it has no more, as far as it can say so."""
        return not self.is_ready(txid)

    @abstractmethod
    def plan(self, txid: int, previous: Any) -> Any:
        """Return the metadata of `txid`; only where the source :attr:`plans`."""

    @abstractmethod
    def success(self, token: Token) -> None:
        """Say that `token` is committed."""

    @abstractmethod
    def close(self) -> None:
        """Release the spout."""


class BatchSource(Source):
    """An :class:`IBatchSpout`.

    One without an ``isReady`` of its own is always ready: it says that it has no more by a batch
    without tuples.
    """

    def __init__(
        self,
        stream: str,
        spout: IBatchSpout,
        conf: Mapping[str, Any],
        listener: Callable[[], None],
    ) -> None:
        super().__init__(stream, spout)
        self._spout = spout
        self._tells = getattr(spout.isReady, "__func__", None) is not IBatchSpout.isReady
        self._emitted = True
        spout.open(conf, None)
        self.notifies = spout.whenReady(listener)

    def is_ready(self, txid: int) -> bool:
        return self._spout.isReady(txid)

    def has_nothing(self, txid: int) -> bool:
        return super().has_nothing(txid) if self._tells else not self._emitted

    def plan(self, txid: int, previous: Any) -> Any:
        return None

    def _emit(self, token: Token, metadata: Any, collector: ListCollector) -> Any:
        self._spout.emitBatch(token.txid, collector)
        self._emitted = bool(collector.rows)

    def success(self, token: Token) -> None:
        self._spout.ack(token.txid)

    def close(self) -> None:
        self._spout.close()


class TridentSource(Source):
    """An :class:`ITridentSpout`: its coordinator and its emitter, both on the driver."""

    def __init__(
        self,
        stream: str,
        spout: ITridentSpout,
        conf: Mapping[str, Any],
        listener: Callable[[], None],
    ) -> None:
        super().__init__(stream, spout)
        kind: SpoutKind = spout.kind
        self.plans = kind == "transactional"
        self.remembers = kind == "opaque"
        self._coordinator = spout.getCoordinator(stream, conf, None)
        self._emitter = spout.getEmitter(stream, conf, None)
        self.notifies = self._coordinator.whenReady(listener)

    def is_ready(self, txid: int) -> bool:
        return self._coordinator.isReady(txid)

    def plan(self, txid: int, previous: Any) -> Any:
        return self._coordinator.initializeTransaction(txid, previous, None)

    def _emit(self, token: Token, metadata: Any, collector: ListCollector) -> Any:
        return self._emitter.emitBatch(token, metadata, collector)

    def success(self, token: Token) -> None:
        self._emitter.success(token)
        self._coordinator.success(token.txid)

    def close(self) -> None:
        try:
            self._emitter.close()
        finally:
            self._coordinator.close()


def open_source(
    stream: str, spout: Spout, conf: Mapping[str, Any], listener: Callable[[], None]
) -> Source:
    """Return the source of `stream`, its spout opened for one run.

    Parameters
    ----------
    stream : str
        The stream's id.
    spout : IBatchSpout or ITridentSpout
        Its spout.
    conf : mapping
        What the spout is opened with.
    listener : callable
        Called by spouts that notify, from any thread.
    """
    if isinstance(spout, IBatchSpout):
        return BatchSource(stream, spout, conf, listener)
    return TridentSource(stream, spout, conf, listener)
