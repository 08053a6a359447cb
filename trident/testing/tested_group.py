"""A batch group in a test: what it is fed, and the driver that runs it until that crashes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar
from uuid import uuid4

from trident.batch.attempt import Making
from trident.batch.engine import Engine
from trident.batch.failures import FailurePolicy
from trident.batch.opening import LogTerms
from trident.batch.progress import BatchProgress
from trident.batch.runner import BatchRunner
from trident.batch.spout_work import SpoutWork
from trident.batch.states import batch_states, make_states
from trident.batch.work import NothingNew
from trident.errors import PlanError
from trident.log.log import Log, MemoryLog
from trident.operations.interfaces import TridentCollector
from trident.plan.plan import BatchGroup
from trident.sources.source import Opening, StreamSource
from trident.sources.spout_sources import open_source
from trident.spouts.fixed import SimulatedCrash
from trident.spouts.interfaces import IBatchSpout, ITridentDataSource, SpoutKind
from trident.tuples.fields import Fields


class FedSpout(IBatchSpout):
    """A spout that emits what the test feeds, as often as it is asked."""

    kind: ClassVar[SpoutKind]

    def __init__(self, fields: Fields, kind: SpoutKind) -> None:
        self.kind = kind  # type: ignore[misc]
        self._fields = fields
        self._rows: list[Any] = []
        self._emitted = 0
        self._others: list[Any] | None = None
        self._order: random.Random | None = None

    def set_batch(
        self, rows: list[Any], others: list[Any] | None, order: random.Random | None
    ) -> None:
        if others is not None and self.kind == "transactional":
            what = "replay: other tuples were given for a transactional stream"
            raise PlanError(what, "", (), "Only an opaque source emits others.")
        self._rows, self._others, self._order = rows, others, order

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        self._emitted = batchId
        rows = self._rows
        if self._order is not None:
            rows = self._order.sample(rows, len(rows))
        single = len(self._fields) == 1
        for row in rows:
            plain = single and not isinstance(row, list | tuple)
            collector.emit((row,) if plain else row)
        if self._others is not None:
            self._rows, self._others = self._others, None

    def ack(self, batchId: int) -> None:
        if batchId == self._emitted:  # the next driver acks the batch before once more
            self._rows = []

    def getOutputFields(self) -> Fields:
        return self._fields


class TestClock:
    """The time of the batches of a test, for windows by it; stands still until it is advanced."""

    __test__ = False  # for pytest, which would collect it by its name

    def __init__(self) -> None:
        self.seconds = 0.0
        """Since 1970."""

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds

    def __call__(self) -> int:
        return round(self.seconds * 1e9)


class TestedGroup:
    """A batch group, and the driver that runs it at present.

    `declared` are the sources that the topology has, by stream id; those of `group` are fed.
    """

    def __init__(
        self, group: BatchGroup, engine: Engine[Any], declared: Mapping[str, Any], clock: TestClock
    ) -> None:
        self.id = group.id
        self.fed: Mapping[str, FedSpout] = {each.stream_id: each.source for each in group.sources}
        self._group = group
        self._engine = engine
        self._clock = clock
        self._declared = {name: declared[name] for name in self.fed}
        self._spouts: Mapping[str, Any] | None = None
        self._log: Log = MemoryLog(group.id)
        self._driver: _Driver | None = None

    def run_fed(self) -> BatchProgress | None:
        """Run the batch that is due, of what the streams are fed."""
        self._choose_spouts(self.fed)
        return self._run()

    def run_declared(self) -> Iterator[BatchProgress]:
        """Run all batches that the topology's own spouts have."""
        for name, source in self._declared.items():
            if not isinstance(source, ITridentDataSource):
                what = f"run: the stream {name!r} is no spout's, but of a"
                raise PlanError(what, type(source).__name__, (), "Feed it: feed(stream, …).")
        self._choose_spouts(self._declared)
        while self._current_driver().has_batch():
            progress = self._run()
            if progress is not None:
                yield progress
            if not self._current_driver().may_have_more():
                return

    @property
    def committed(self) -> int:
        """The batch that was committed last; 0 before the first."""
        newest = self._log.newest()
        return newest.committed if newest else 0

    def close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    def _choose_spouts(self, spouts: Mapping[str, Any]) -> None:
        if self._spouts not in (None, spouts):
            advice = "Use two testers."
            raise PlanError(
                "Tester: a group's batches are fed, or run from its spouts, not both:",
                self.id,
                (),
                advice,
            )
        self._spouts = spouts

    def _run(self) -> BatchProgress | None:
        """Run the batch that is due, by as many drivers as that takes."""
        txid = self._current_driver().runner.next_txid
        while True:
            driver = self._current_driver()
            if driver.runner.next_txid > txid:  # it had committed when it crashed
                return None
            try:
                return driver.runner.run(driver.work)
            except NothingNew:
                return None
            except SimulatedCrash:
                self.close()
            except BaseException:
                self.close()
                raise

    def _current_driver(self) -> _Driver:
        if self._driver is None:
            spouts = self._spouts or self.fed
            self._driver = _Driver(self._group, self._engine, self._log, spouts, self._clock)
        return self._driver


class _Driver:
    """What runs the batches of a group until it crashes."""

    def __init__(
        self,
        group: BatchGroup,
        engine: Engine[Any],
        log: Log,
        spouts: Mapping[str, Any],
        clock: TestClock,
    ) -> None:
        with ExitStack() as undo:
            states = make_states(group.states)
            opened = engine.open(group, states)
            undo.callback(opened.close)
            policy = FailurePolicy(backoff=0.0)
            self.runner = BatchRunner(
                log,
                batch_states(states),
                group=group.id,
                policy=policy,
                making=Making(group.timed, clock, group.partitioned, group.ageing),
            )
            schemas = {each.stream_id: str(each.fields) for each in group.sources}
            self.runner.open(LogTerms(streams=schemas))
            self._sources: list[StreamSource] = []
            for name, spout in spouts.items():
                source = open_source(Opening(name, {}, _ignore, opened, uuid4().hex), spout)
                undo.callback(source.close)
                self._sources.append(source)
            self.work = SpoutWork(self._sources, opened)
            if (last := self.runner.ledger.last) is not None:
                self.work.committed(last)
            self._closing = undo.pop_all()

    def has_batch(self) -> bool:
        return any(source.is_ready(self.runner.next_txid) for source in self._sources)

    def may_have_more(self) -> bool:
        """Whether the batch before held tuples, or a spout says that it has more."""
        following = self.runner.next_txid
        return self.work.filled or not all(each.has_nothing(following) for each in self._sources)

    def close(self) -> None:
        self._closing.close()


def _ignore() -> None:
    """A test asks for each batch itself."""
