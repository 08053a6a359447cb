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
from trident.spouts.interfaces import ITridentDataSource, Readiness
from trident.states.errors import TridentError
from trident.states.values import Token
from trident.tuples.fields import Fields

_logger = logging.getLogger("trident")


class Tuples(Protocol):
    """The tuples of one stream, in this process or on executors."""

    @property
    def length(self) -> int:
        """Their number."""


class PartitionReader(Protocol):
    """What emits partitions: the engine that works on their tuples."""

    def read(self, emission: Emission) -> tuple[Tuples, list[Emitted]]:
        """Emit all partitions of an emission; return their tuples, and the result of each."""


@dataclass(frozen=True)
class Opening:
    """The arguments for opening a spout; any thread may call `listener`; `run` is unique."""

    stream: str
    conf: Mapping[str, Any]
    listener: Callable[[], None]
    reader: PartitionReader
    run: str


class SourceBatch(NamedTuple):
    """What a source emitted for one attempt."""

    tuples: Tuples
    metadata: Any = None
    """What the next batch goes on from."""
    planned: Any = None
    """What a replay needs to emit the same again."""
    active: Sequence[str] | None = None
    """The partitions that a watermark waits for; None for the stream as a whole."""


class StreamSource(ABC):
    """One stream's spout during one run.

    If `says_end` its `readiness` says when there is nothing; otherwise an empty batch does.
    """

    plans = False
    """Whether a batch's content is decided, and logged, before it is emitted."""
    remembers = False
    """Whether an emission says what the next one needs."""
    notifies = False
    """Whether it calls the listener when a batch is ready; otherwise the source is polled."""
    follows_metadata = False
    """Whether the content of a batch never depends on its txid, but on the metadata, or on what is
    available: then an empty batch need not use up its txid."""

    def __init__(
        self,
        opening: Opening,
        spout: ITridentDataSource,
        readiness: Readiness | None,
        *,
        says_end: bool,
    ) -> None:
        self.stream = opening.stream
        self.fields = Fields.of(spout.getOutputFields())
        self._readiness = readiness
        self._says_end = says_end
        self._filled = True
        self.leaves_txid = False
        """Whether the last txid, if it was empty, may still be emitted with tuples later."""

    def emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch:
        """Emit the tuples of one attempt, from what the last batch said and the log has planned."""
        self.leaves_txid = self.follows_metadata or (
            self._says_end and not self.is_ready(token.txid)
        )
        try:
            # Copies, as a spout may change them in place. The next attempt needs them as they are,
            # and the commit stores them later, perhaps after other batches were emitted.
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

    def is_ready(self, txid: int) -> bool:
        """Return whether there is a batch now."""
        return self._readiness is None or self._readiness.isReady(txid)

    def has_nothing(self, txid: int) -> bool:
        """Return whether the spout says that it has no more, as far as it can say so."""
        return not self.is_ready(txid) if self._says_end else not self._filled

    def lag(self, txid: int) -> int | None:
        """Return how many tuples wait, if the spout knows; in any thread, raises nothing."""
        readiness = self._readiness
        return None if readiness is None else self._known(lambda: readiness.lag(txid))

    def held_back(self) -> int | None:
        """Return how many records open transactions hold back; otherwise as :meth:`lag`."""
        return None

    def _known(self, ask: Callable[[], int | None]) -> int | None:
        try:
            return ask()
        except Exception:
            _logger.debug("the lag of stream %s is not known", self.stream, exc_info=True)
            return None

    def plan(self, txid: int, previous: Any) -> Any:
        """Return the metadata of `txid`; only for a source that :attr:`plans`."""
        raise NotImplementedError

    def committing(self, token: Token) -> None:
        """Do the spout's part of the commit of `token`."""

    @abstractmethod
    def success(self, token: Token) -> None:
        """Tell the spout that `token` is committed."""

    @abstractmethod
    def close(self) -> None:
        """Release the spout."""

    def _copied(self, metadata: Any) -> Any:
        return None if metadata is None else check_metadata({self.stream: metadata})[self.stream]

    def _collector(self) -> SpoutCollector:
        return SpoutCollector(f"the spout of {self.stream}", self.fields)


def has_own_ready(readiness: Readiness) -> bool:
    """Whether it has an ``isReady`` of its own, which says when there is nothing."""
    return getattr(readiness.isReady, "__func__", None) is not Readiness.isReady
