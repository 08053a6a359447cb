"""Runs bolts: as an aggregator of a partition, or in the commit phase as a state's updater."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.errors import PlanError
from trident.operations.annotations import identified
from trident.operations.interfaces import (
    Aggregator,
    Operation,
    StateUpdater,
    TridentCollector,
    TridentOperationContext,
)
from trident.spouts.rich import DEFAULT_STREAM
from trident.states.control import ControlRecord
from trident.states.errors import StateError
from trident.states.state import Batch, State, StateFactory
from trident.states.values import Token
from trident.transactional.bolts import (
    BasicOutputCollector,
    BatchOutputCollector,
    IBasicBolt,
    IBatchBolt,
    TopologyContext,
    TransactionAttempt,
)
from trident.transactional.carried import Reader, pack, source_of
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class Component:
    """A bolt as it runs in any of its tasks; pickles.

    Each attempt runs a copy of the bolt. `consumers` says how many tasks the bolts have that take
    its tuples.
    """

    id: str
    bolt: IBatchBolt | IBasicBolt
    streams: Mapping[str, Fields]
    reader: Reader
    consumers: Mapping[str, int]


class RunningBolt:
    """A bolt during one attempt, in one task."""

    def __init__(self, component: Component, id: object, task: int, out: TridentCollector) -> None:
        self._id = id
        self._reader = component.reader
        self._bolt = copy.deepcopy(component.bolt)
        self._out = _Collector(component, id)
        context = TopologyContext(component.id, task, component.consumers)
        self._out.into = out
        if isinstance(self._bolt, IBatchBolt):
            self._bolt.prepare({}, context, self._out, id)
        else:
            self._bolt.prepare({}, context)
            self._basic = BasicOutputCollector(self._out, id)

    def execute(self, carried: Sequence[Any], out: TridentCollector) -> None:
        self._out.into = out
        given = self._reader.read(self._id, carried)
        if isinstance(self._bolt, IBatchBolt):
            self._bolt.execute(given)
        else:
            self._bolt.execute(given, self._basic)

    def finish(self, out: TridentCollector) -> None:
        self._out.into = out
        if isinstance(self._bolt, IBatchBolt):
            self._bolt.finishBatch()
            return
        finished = getattr(self._bolt, "finishedId", None)
        if finished is not None:
            finished(self._id)
        self._bolt.cleanup()


class _Collector(BatchOutputCollector):
    into: TridentCollector

    def __init__(self, component: Component, id: object) -> None:
        self._component = component
        self._id = id

    def _emit(self, task: int | None, arguments: Sequence[Any]) -> None:
        component = self._component
        if not arguments or len(arguments) > 2:
            what = f"{component.id}: emit takes ([streamId,] values), found"
            raise PlanError(what, repr(arguments))
        stream = arguments[0] if len(arguments) == 2 else DEFAULT_STREAM
        values = arguments[-1]
        fields = component.streams.get(stream)
        if fields is None:
            advice = "Declare it in declareOutputFields()."
            what = f"{component.id}: emit names a stream that was not declared:"
            raise PlanError(what, repr(stream), tuple(component.streams), advice)
        if not isinstance(values, list | tuple) or len(values) != len(fields):
            what = f"{component.id} emits on the stream {stream!r} values for {fields.names}, found"
            raise PlanError(what, repr(values)[:80])
        if values[0] != self._id:
            what = f"{component.id}: the first value is the id that prepare() was given, found"
            raise PlanError(what, repr(values[0])[:80], (), "Emit [self.id, …].")
        carried = pack(component.id, values[1:])
        self.into.emit((source_of(component.id, stream), task, carried))


class _InTask(Operation):
    """Runs a bolt in a partition, which is one of its tasks."""

    def __init__(self, component: Component) -> None:
        self._component = component
        self.label = component.id
        self.identity = identified(component.bolt)
        self._task = 0

    def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
        self._task = context.getPartitionIndex()


class BoltAggregator(_InTask, Aggregator[RunningBolt]):
    """Runs a bolt over the batch in each of its tasks."""

    attempts = True

    def init(self, batchId: object, collector: TridentCollector) -> RunningBolt:
        id = TransactionAttempt(*batchId) if isinstance(batchId, Token) else batchId
        return RunningBolt(self._component, id, self._task, collector)

    def aggregate(
        self, val: RunningBolt, tuple: Sequence[Any], collector: TridentCollector
    ) -> RunningBolt:
        val.execute(tuple, collector)
        return val

    def complete(self, val: RunningBolt, collector: TridentCollector) -> None:
        val.finish(collector)


class CommitPhase(State):
    """Knows which attempt is being written, and keeps nothing."""

    attempt: TransactionAttempt | None = None

    def beginCommit(self, batch: Batch) -> None:
        token = batch.token if isinstance(batch, ControlRecord) else batch
        if not isinstance(token, Token):
            raise StateError(f"a committer bolt runs in a batch of a topology, not in {batch!r}")
        self.attempt = TransactionAttempt(*token)

    def commit(self, batch: Batch) -> None:
        self.attempt = None


@dataclass(frozen=True)
class CommitPhaseFactory(StateFactory):
    """Makes the state from which a committer bolt gets its attempt."""

    hosted = "driver"

    def makeState(self, *_: Any, **__: Any) -> CommitPhase:
        return CommitPhase()


class BoltUpdater(_InTask, StateUpdater[CommitPhase]):
    """Runs a committer bolt over the batch."""

    acts_on_nothing = True

    def updateState(
        self, state: CommitPhase, tuples: Sequence[Any], collector: TridentCollector
    ) -> None:
        running = RunningBolt(self._component, state.attempt, self._task, collector)
        for each in tuples:
            running.execute(each, collector)
        running.finish(collector)
