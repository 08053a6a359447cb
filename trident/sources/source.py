"""One stream's spout during one run, as the spout loop drives it on the driver."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from trident.log.entry import check_metadata
from trident.sources.emission import Emission, Emitted
from trident.spouts.collector import SpoutCollector
from trident.spouts.interfaces import ITridentDataSource
from trident.states.errors import TridentError
from trident.states.values import Token
from trident.tuples.fields import Fields

_logger = logging.getLogger("trident")


class Tuples(Protocol):
    """The tuples of one stream, wherever they are."""

    @property
    def length(self) -> int:
        """How many there are."""


class PartitionReader(Protocol):
    """What emits partitions: the engine that works on their tuples."""

    def read(self, emission: Emission) -> tuple[Tuples, list[Emitted]]:
        """Emit all partitions of an emission, and tell of each what became of it."""


@dataclass(frozen=True)
class Opening:
    """What a spout is opened with; `listener` may be called from any thread, `run` is unique."""

    stream: str
    conf: Mapping[str, Any]
    listener: Callable[[], None]
    reader: PartitionReader
    run: str


class SourceBatch(NamedTuple):
    """What a source emitted for one attempt; `planned` makes the same again, `active` are
    watched."""

    tuples: Tuples
    metadata: Any = None
    planned: Any = None
    active: Sequence[str] | None = None


class StreamSource(ABC):
    """One stream's spout during one run; `tells` is whether it says itself when it has nothing."""

    plans = False
    """Whether a batch's content is decided, and logged, before it is emitted."""
    remembers = False
    """Whether an emission says what the next one needs."""
    notifies = False
    """Whether the listener is told of what is ready; else the source is polled."""
    follows_metadata = False
    """Whether a batch follows from the metadata, or from what there is, and never from its txid:
    one without tuples then leaves the txid to what comes later."""

    def __init__(self, opening: Opening, spout: ITridentDataSource, *, tells: bool) -> None:
        self.stream = opening.stream
        self.fields = Fields.of(spout.getOutputFields())
        self._tells = tells
        self._filled = True
        self.leaves_txid = False
        """Whether the txid of which no tuple was just emitted may still be emitted later."""

    def emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch:
        """Emit the tuples of one attempt, from what the last batch said and the log has planned."""
        self.leaves_txid = self.follows_metadata or (self._tells and not self.is_ready(token.txid))
        try:
            # Copies, as a spout may change them in place: the next attempt begins where this did,
            # and a commit, before which other batches may be emitted, stores what its own has said.
            batch = self._emit(token, deepcopy(metadata), deepcopy(planned))
        except TridentError:
            raise
        except Exception as error:
            where = f"batch {token.txid}, attempt {token.attempt}"
            error.add_note(f'raised by the spout of the stream "{self.stream}" in {where}')
            raise
        self._filled = batch.tuples.length > 0
        said = self._copied(batch.metadata) if self.remembers else None
        return batch._replace(metadata=said, planned=self._copied(batch.planned))

    @abstractmethod
    def _emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch: ...

    @abstractmethod
    def is_ready(self, txid: int) -> bool:
        """Return whether there is a batch now."""

    def has_nothing(self, txid: int) -> bool:
        """Return whether the spout says that it has no more, as far as it can say so."""
        return not self.is_ready(txid) if self._tells else not self._filled

    def lag(self, txid: int) -> int | None:
        """Return how many tuples wait, where the spout knows; in any thread, raises nothing."""
        return self._told(lambda: self._lag(txid))

    def held_back(self) -> int | None:
        """Return how many records open transactions hold back, as :meth:`lag` does the others."""
        return self._told(self._held_back)

    def _told(self, ask: Callable[[], int | None]) -> int | None:
        try:
            return ask()
        except Exception:
            _logger.debug("the lag of stream %s can't be told", self.stream, exc_info=True)
            return None

    def _lag(self, txid: int) -> int | None:
        return None

    def _held_back(self) -> int | None:
        return None

    def plan(self, txid: int, previous: Any) -> Any:
        """Return the metadata of `txid`; only where the source :attr:`plans`."""
        raise NotImplementedError

    def committing(self, token: Token) -> None:
        """Do the spout's part of the commit of `token`."""

    @abstractmethod
    def success(self, token: Token) -> None:
        """Say that `token` is committed."""

    @abstractmethod
    def close(self) -> None:
        """Release the spout."""

    def _copied(self, metadata: Any) -> Any:
        return None if metadata is None else check_metadata({self.stream: metadata})[self.stream]

    def _collector(self) -> SpoutCollector:
        return SpoutCollector(f"the spout of {self.stream}", self.fields)


def tells_nothing(spout: Any, interface: Any) -> bool:
    """Whether `spout` says by an ``isReady`` of its own when it has nothing."""
    return getattr(spout.isReady, "__func__", None) is not interface.isReady
