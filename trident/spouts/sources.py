"""Spouts of every interface, as the spout loop drives them on the driver."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from trident.kernels.emission import Assignment, Emission, Emitted
from trident.spouts.collector import SpoutCollector
from trident.spouts.errors import SourceUnavailableError, SpoutPartitionError
from trident.spouts.interfaces import (
    CommitterEmitter,
    IBatchSpout,
    ITridentDataSource,
    ITridentSpout,
)
from trident.spouts.partitioned import (
    ISpoutPartition,
    PartitionCoordinator,
    PartitionedSpout,
)
from trident.states.values import Token

_logger = logging.getLogger("trident")


class Tuples(Protocol):
    """The tuples of one stream, wherever they are."""

    @property
    def length(self) -> int:
        """How many there are."""
        ...


class PartitionReader(Protocol):
    """What emits partitions: the engine that works on their tuples."""

    def read(self, emission: Emission) -> tuple[Tuples, list[Emitted]]:
        """Emit all partitions of an emission, and tell of each what became of it."""
        ...


@dataclass(frozen=True)
class Opening:
    """What a spout is opened with.

    Parameters
    ----------
    stream : str
        The stream's id.
    conf : mapping
        The user's settings.
    listener : callable
        Called by spouts that notify, from any thread.
    reader : PartitionReader
        Emits partitions.
    run : str
        The run, unique.
    """

    stream: str
    conf: Mapping[str, Any]
    listener: Callable[[], None]
    reader: PartitionReader
    run: str


class SourceBatch(NamedTuple):
    """What a source emitted for one attempt.

    Parameters
    ----------
    tuples : Tuples
        The tuples.
    metadata : object
        What the next batch needs, where the source :attr:`~Source.remembers`.
    planned : object or None
        What a later attempt needs to emit the same tuples, where it isn't in the log yet.
    """

    tuples: Tuples
    metadata: Any = None
    planned: Any = None


class Source(ABC):
    """One stream's spout during one run.

    Parameters
    ----------
    opening : Opening
        What it is opened with.
    spout : ITridentDataSource
        Its spout.
    tells : bool
        Whether the spout itself says when it has nothing. One that can't is always ready, and says
        it by a batch without tuples.
    """

    plans = False
    """Whether a batch's content is decided, and logged, before it is emitted."""
    remembers = False
    """Whether an emission says what the next one needs."""
    notifies = False
    """Whether the listener is told of what is ready; else the source is polled."""

    def __init__(self, opening: Opening, spout: ITridentDataSource, *, tells: bool) -> None:
        self.stream = opening.stream
        self.fields = spout.getOutputFields()
        self._tells = tells
        self._filled = True

    def emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch:
        """Emit the tuples of one attempt.

        Parameters
        ----------
        token : Token
            The attempt.
        metadata : object or None
            What the last committed batch said.
        planned : object or None
            What the log says that this batch holds.
        """
        batch = self._emit(token, metadata, planned)
        self._filled = batch.tuples.length > 0
        return batch

    @abstractmethod
    def _emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch: ...

    @abstractmethod
    def is_ready(self, txid: int) -> bool:
        """Return whether there is a batch now."""

    def has_nothing(self, txid: int) -> bool:
        """Return whether the spout says that it has no more, as far as it can say so."""
        return not self.is_ready(txid) if self._tells else not self._filled

    def plan(self, txid: int, previous: Any) -> Any:
        """Return the metadata of `txid`; only where the source :attr:`plans`."""
        raise NotImplementedError

    def committing(self, token: Token) -> None:  # noqa: B027 - most spouts have no part in it
        """Do the spout's part of the commit of `token`."""

    @abstractmethod
    def success(self, token: Token) -> None:
        """Say that `token` is committed."""

    @abstractmethod
    def close(self) -> None:
        """Release the spout."""

    def _collector(self) -> SpoutCollector:
        return SpoutCollector(f"the spout of {self.stream}", self.fields)


class BatchSource(Source):
    """An :class:`IBatchSpout`."""

    def __init__(self, opening: Opening, spout: IBatchSpout) -> None:
        super().__init__(opening, spout, tells=_tells(spout, IBatchSpout))
        self._spout = spout
        spout.open(opening.conf, None)
        self.notifies = spout.whenReady(opening.listener)

    def is_ready(self, txid: int) -> bool:
        return self._spout.isReady(txid)

    def _emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch:
        collector = self._collector()
        self._spout.emitBatch(token.txid, collector)
        return SourceBatch(collector.block())

    def success(self, token: Token) -> None:
        self._spout.ack(token.txid)

    def close(self) -> None:
        self._spout.close()


class TridentSource(Source):
    """An :class:`ITridentSpout`: its coordinator and its emitter, both on the driver."""

    def __init__(self, opening: Opening, spout: ITridentSpout) -> None:
        super().__init__(opening, spout, tells=True)
        self.plans = spout.kind == "transactional"
        self.remembers = spout.kind == "opaque"
        self._coordinator = spout.getCoordinator(opening.stream, opening.conf, None)
        self._emitter = spout.getEmitter(opening.stream, opening.conf, None)
        self.notifies = self._coordinator.whenReady(opening.listener)

    def is_ready(self, txid: int) -> bool:
        return self._coordinator.isReady(txid)

    def plan(self, txid: int, previous: Any) -> Any:
        return self._coordinator.initializeTransaction(txid, previous, None)

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


class PartitionedSource(Source):
    """A spout over partitions: its coordinator is here, its partitions are read by the engine.

    The metadata of the stream is a mapping from a partition's id to what the spout said of it.
    """

    remembers = True

    def __init__(self, opening: Opening, spout: PartitionedSpout) -> None:
        self._coordinator = spout.getCoordinator(opening.conf, None)
        tells = _tells(self._coordinator, PartitionCoordinator)
        super().__init__(opening, spout, tells=tells)
        self._opening = opening
        self._spout = spout
        self._again = spout.kind == "transactional"
        self._orders = spout.getEmitter(opening.conf, None)
        self._away: set[str] = set()
        self.notifies = self._coordinator.whenReady(opening.listener)

    def is_ready(self, txid: int) -> bool:
        return self._coordinator.isReady(txid)

    def _emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch:
        known = metadata or {}
        self._coordinator.follow(known)
        if planned is None:
            assignments = [
                Assignment(partition, known.get(name), again=False)
                for name, partition in self._partitions().items()
            ]
        else:
            assignments = self._planned(token, planned)
        emission = Emission(
            self.stream,
            self._spout,
            self.fields,
            self._opening.conf,
            self._opening.run,
            token,
            tuple(assignments),
        )
        tuples, emitted = self._opening.reader.read(emission)
        self._tell_away({each.id: each.away for each in emitted if each.away is not None})
        said = {each.id: each.metadata for each in emitted if each.metadata is not None}
        for each in emitted:
            if self._again and each.tuples and each.metadata is None:
                raise SpoutPartitionError(
                    self.stream,
                    f"partition {each.id} emitted {each.tuples} tuples and returned None, which "
                    "tells nobody how to emit them again",
                    "Return from emitPartitionBatchNew what emitPartitionBatch needs.",
                )
        following = {**known, **said}
        self._coordinator.follow(following)
        return SourceBatch(tuples, following, said if self._again and planned is None else None)

    def _partitions(self) -> dict[str, ISpoutPartition]:
        ordered = self._orders.getOrderedPartitions(self._coordinator.getPartitionsForBatch())
        found: dict[str, ISpoutPartition] = {}
        for partition in ordered:
            name: Any = partition.getId()
            if not isinstance(name, str):
                problem = f"the id of a partition is {name!r}"
                raise SpoutPartitionError(self.stream, problem, "Return a str from getId().")
            if name in found:
                problem = f"partition {name!r} is listed twice"
                advice = "Give each partition of getOrderedPartitions an id of its own."
                raise SpoutPartitionError(self.stream, problem, advice)
            found[name] = partition
        return found

    def _planned(self, token: Token, planned: Mapping[str, Any]) -> list[Assignment]:
        found = self._partitions()
        missing = planned.keys() - found.keys()
        if missing:
            raise SourceUnavailableError(
                f"stream {self.stream!r}, partition {', '.join(sorted(missing))}",
                f"it is part of batch {token.txid}, which is to be emitted again, and is not there",
                "Bring it back: a transactional stream waits for it.",
            )
        return [
            Assignment(partition, planned[name], again=True)
            for name, partition in found.items()
            if name in planned
        ]

    def _tell_away(self, away: Mapping[str, str]) -> None:
        """Go on without the partitions that are away, where that loses nothing; say so once."""
        if away and self._again:
            name, problem = next(iter(away.items()))
            raise SourceUnavailableError(f"stream {self.stream!r}, partition {name}", problem)
        for name, problem in away.items():
            if name not in self._away:
                _logger.warning(
                    "stream %s goes on without partition %s: %s", self.stream, name, problem
                )
        for name in self._away - away.keys():
            _logger.info("stream %s: partition %s is read again, or gone", self.stream, name)
        self._away = set(away)

    def success(self, token: Token) -> None:
        self._coordinator.success(token)

    def close(self) -> None:
        try:
            self._orders.close()
        finally:
            self._coordinator.close()


def open_source(opening: Opening, spout: ITridentDataSource) -> Source:
    """Return the source of a stream, its spout opened for one run."""
    if isinstance(spout, IBatchSpout):
        return BatchSource(opening, spout)
    if isinstance(spout, ITridentSpout):
        return TridentSource(opening, spout)
    if isinstance(spout, PartitionedSpout):
        return PartitionedSource(opening, spout)
    raise TypeError(f"stream {opening.stream!r}: {type(spout).__name__} is of no spout's interface")


def _tells(spout: Any, interface: Any) -> bool:
    """Whether `spout` says by an ``isReady`` of its own when it has nothing."""
    return getattr(spout.isReady, "__func__", None) is not interface.isReady
