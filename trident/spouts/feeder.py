"""A spout that is fed by hand."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, ClassVar

from trident.errors import TridentError
from trident.operations.emitted import Row, check_row
from trident.operations.interfaces import TridentCollector
from trident.spouts.interfaces import IBatchSpout, SpoutKind
from trident.states.tracebacks import Briefly
from trident.tuples.fields import Fields, FieldsLike

_logger = logging.getLogger("trident")
_STARTING = 1.0
"""Seconds that a run may take to open its spouts before a feed warns that none has started."""


class FeedError(TridentError):
    """The run ended before the tuples were known to be committed; they aren't emitted again.

    `emitted` says whether their batch had begun.
    """

    def __init__(self, tuples: int, emitted: bool) -> None:
        super().__init__(tuples, emitted)

    def __str__(self) -> str:
        tuples, emitted = self.args
        found = (
            "its batch had begun and was not acknowledged; the state shows whether it was committed"
            if emitted
            else "it had not begun"
        )
        return f"the run ended before a feed of {tuples} tuples was committed: {found}"


class _Feed:
    """The tuples of one call, and their progress."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.emitted = False
        self.committed = False
        self.abandoned = False


class FeederBatchSpout(IBatchSpout):
    """Emits the tuples given to :meth:`feed`: each call is one batch.

    Parameters
    ----------
    fields : Fields
        The names of the values.

    Notes
    -----
    Lives on the driver; :meth:`feed` may be called from any thread. A batch that fails is emitted
    again as long as the run lasts. If the process dies, tuples that weren't committed are lost, and
    their ``feed`` hasn't returned.

    Examples
    --------
    >>> spout = FeederBatchSpout("sentence")
    >>> spout.isReady(1)
    False
    """

    kind: ClassVar[SpoutKind] = "opaque"

    def __init__(self, fields: FieldsLike) -> None:
        self._fields = Fields.of(fields)
        self._changed = threading.Condition()
        self._waiting: deque[_Feed] = deque()
        self._emitted: dict[int, _Feed] = {}
        self._listener: Callable[[], None] = _nobody
        self._open = False

    def feed(self, tuples: Iterable[Sequence[Any]], timeout: float | None = None) -> None:
        """Feed one batch, and return when it is committed.

        Parameters
        ----------
        tuples : iterable of sequence
            Tuples with one value a field.
        timeout : float, optional
            How many seconds to wait at most; for ever by default, also for a run to start.

        Raises
        ------
        EmittedValueError
            When a tuple is no list or tuple of one value a field; nothing was fed.
        TimeoutError
            When the time is over; a batch that hasn't begun is withdrawn.
        FeedError
            When the run ends before the commit.
        """
        width = len(self._fields)
        with Briefly():
            feed = _Feed([check_row("FeederBatchSpout", values, width) for values in tuples])
        with self._changed:
            self._waiting.append(feed)
            listener = self._listener
        listener()
        with self._changed:
            until = None if timeout is None else monotonic() + timeout
            moment = _STARTING if timeout is None else min(timeout, _STARTING)
            if not self._changed.wait_for(lambda: self._open or feed.abandoned, moment):
                _logger.warning(
                    "a feed of %s waits: no run of its topology has started. Call start() before "
                    "feed(), or feed in another thread.",
                    self,
                )
            seconds = None if until is None else until - monotonic()
            if not self._changed.wait_for(lambda: feed.committed or feed.abandoned, seconds):
                if feed in self._waiting:
                    self._waiting.remove(feed)
                    why = "no batch began" if self._open else "no run of its topology started"
                    raise TimeoutError(f"not fed: {why} within {timeout} s; withdrawn")
                raise TimeoutError(f"not committed within {timeout} s; its batch goes on")
            if feed.abandoned:
                raise FeedError(len(feed.rows), feed.emitted)

    def open(self, conf: Mapping[str, Any], context: Any) -> None:
        with self._changed:
            if self._open:
                raise RuntimeError("FeederBatchSpout: it already feeds another run")
            self._open = True
            self._changed.notify_all()

    def isReady(self, batchId: int) -> bool:
        return bool(self._waiting) or batchId in self._emitted

    def whenReady(self, listener: Callable[[], None]) -> bool:
        self._listener = listener
        return True

    def lag(self, txid: int) -> int:
        with self._changed:
            feeds = [*self._emitted.values(), *self._waiting]
        return sum(len(feed.rows) for feed in feeds)

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        with self._changed:
            feed = self._emitted.get(batchId)
            if feed is None and not self._waiting:
                return
            if feed is None:
                feed = self._emitted[batchId] = self._waiting.popleft()
            feed.emitted = True
        for values in feed.rows:
            collector.emit(values)

    def ack(self, batchId: int) -> None:
        with self._changed:
            feed = self._emitted.pop(batchId, None)
            if feed is not None:
                feed.committed = True
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._open = False
            self._listener = _nobody
            self._waiting.extend(self._emitted.values())
            self._emitted.clear()
            for feed in self._waiting:
                feed.abandoned = True
            self._waiting.clear()
            self._changed.notify_all()

    def getOutputFields(self) -> Fields:
        return self._fields


def _nobody() -> None:
    """Nobody listens between runs."""
