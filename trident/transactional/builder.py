"""Builds transactional topologies: a spout, bolts, and which tuples each of them takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.errors import DuplicateNameError, PlanError
from trident.operations.interfaces import CustomStreamGrouping
from trident.plan.arguments import as_instance
from trident.spouts.rich import DEFAULT_STREAM, OutputFieldsDeclarer
from trident.transactional.bolts import IBasicBolt, IBatchBolt, ICommitter
from trident.transactional.carried import CARRIED, NAMES, Carry, Reader, Subscribed, source_of
from trident.transactional.groupings import (
    ByFields,
    Custom,
    Grouping,
    Groupings,
    direct,
    shuffled,
    to_each,
    to_first,
)
from trident.transactional.running import BoltAggregator, BoltUpdater, CommitPhaseFactory, Component
from trident.tuples.fields import Fields

Bolt = IBatchBolt | IBasicBolt


@dataclass
class _Declared:
    """A component while the topology is built."""

    id: str
    tasks: int
    streams: Mapping[str, Fields]
    bolt: Any = None
    commits: bool = False
    taken: dict[tuple[str, str], Grouping] = field(default_factory=dict)


class BoltDeclarer:
    """Says which tuples a bolt takes, and which of its tasks gets each; each call adds a source.

    Every method takes the id of a component, and optionally one of its streams.
    """

    def __init__(self, components: Mapping[str, _Declared], bolt: _Declared) -> None:
        self._components = components
        self._bolt = bolt

    def shuffleGrouping(self, componentId: str, streamId: str = DEFAULT_STREAM) -> Self:
        """One task after the other."""
        return self._take("shuffleGrouping", componentId, streamId, shuffled)

    def localOrShuffleGrouping(self, componentId: str, streamId: str = DEFAULT_STREAM) -> Self:
        """As `shuffleGrouping`: where tasks run is Spark's to say."""
        return self._take("localOrShuffleGrouping", componentId, streamId, shuffled)

    def noneGrouping(self, componentId: str, streamId: str = DEFAULT_STREAM) -> Self:
        """Any task: as `shuffleGrouping`, as in Storm."""
        return self._take("noneGrouping", componentId, streamId, shuffled)

    def allGrouping(self, componentId: str, streamId: str = DEFAULT_STREAM) -> Self:
        """A copy for each task."""
        return self._take("allGrouping", componentId, streamId, to_each)

    def globalGrouping(self, componentId: str, streamId: str = DEFAULT_STREAM) -> Self:
        """All to one task."""
        return self._take("globalGrouping", componentId, streamId, to_first)

    def directGrouping(self, componentId: str, streamId: str = DEFAULT_STREAM) -> Self:
        """To the task that `emitDirect` names."""
        return self._take("directGrouping", componentId, streamId, direct)

    def fieldsGrouping(self, componentId: str, *streamId_and_fields: Any) -> Self:
        """Equal values to one task: ``fieldsGrouping(component, [stream,] fields)``."""
        *named, fields = streamId_and_fields
        stream = named[0] if named else DEFAULT_STREAM
        known = self._fields("fieldsGrouping", componentId, stream)
        for name in Fields.of(fields):
            if name not in known:
                what = f"fieldsGrouping: {componentId} emits no field"
                raise PlanError(what, name, known.names)
        # The first one is the attempt, which all tuples of a batch have.
        positions = tuple(known.index(name) - 1 for name in Fields.of(fields) if known.index(name))
        grouping: Grouping = ByFields(positions) if positions else to_first
        return self._take("fieldsGrouping", componentId, stream, grouping)

    def customGrouping(self, componentId: str, *streamId_and_grouping: Any) -> Self:
        """As a grouping says: ``customGrouping(component, [stream,] CustomStreamGrouping)``."""
        *named, grouping = streamId_and_grouping
        stream = named[0] if named else DEFAULT_STREAM
        known = self._fields("customGrouping", componentId, stream)
        checked: Any = as_instance("customGrouping", grouping, CustomStreamGrouping)
        without_attempt = Fields(*known.names[1:])
        return self._take("customGrouping", componentId, stream, Custom(checked, without_attempt))

    def forget(self) -> None:
        """Take no tuples, as before the first call."""
        self._bolt.taken.clear()

    def _fields(self, call: str, component: str, stream: str) -> Fields:
        source = self._components.get(component)
        if source is None or component == self._bolt.id:
            known = tuple(name for name in self._components if name != self._bolt.id)
            advice = "Set the spout and the bolts in the order in which tuples flow."
            raise PlanError(f"{call}: there is no component", repr(component), known, advice)
        if stream not in source.streams:
            what = f"{call}: {component} has no stream"
            raise PlanError(what, repr(stream), tuple(source.streams))
        return source.streams[stream]

    def _take(self, call: str, component: str, stream: str, grouping: Grouping) -> Self:
        self._fields(call, component, stream)
        if (component, stream) in self._bolt.taken:
            what = f"{call}: {self._bolt.id} takes these tuples already:"
            raise PlanError(what, f"{component}, stream {stream}")
        self._bolt.taken[component, stream] = grouping
        return self


class Bolts:
    """The bolts behind a source, in the order in which tuples flow.

    The id's field is the first of `fields`.
    """

    def __init__(self, source: str, fields: Fields) -> None:
        self._source = source
        self.components = {source: _Declared(source, 1, {DEFAULT_STREAM: fields})}

    def add(self, call: str, id: str, bolt: Bolt, tasks: int, *, commits: bool) -> BoltDeclarer:
        """Add a bolt; what it returns says which tuples the bolt takes."""
        if not isinstance(id, str) or not id:
            raise PlanError(f"{call}: a bolt's id is a name, found", repr(id))
        if id in self.components:
            advice = "Give each component an id of its own."
            raise DuplicateNameError(f"{call}: there is already a component", id, (), advice)
        if isinstance(bolt, type) or not isinstance(bolt, IBatchBolt | IBasicBolt):
            advice = "Derive it from BaseBatchBolt, BaseTransactionalBolt or BaseBasicBolt."
            raise PlanError(f"{call}: expected a bolt, found", repr(bolt)[:80], (), advice)
        if type(tasks) is not int or tasks < 1:
            raise PlanError(f"{call}: the parallelism is 1 or more, found", repr(tasks))
        declarer = OutputFieldsDeclarer()
        bolt.declareOutputFields(declarer)
        declared = _Declared(id, 1 if commits else tasks, declarer.streams, bolt, commits)
        self.components[id] = declared
        return BoltDeclarer(self.components, declared)

    def compile(
        self, topology: TridentTopology, source: Stream, parallelism: int | None = None
    ) -> Stream:
        """Add the steps of all bolts to a topology; return what the last one emits."""
        names = ", ".join(source.getOutputFields().names)
        carry = Carry(source_of(self._source, DEFAULT_STREAM))
        last = source.each(names, carry, CARRIED).project(NAMES)
        if parallelism is not None:
            last = last.parallelismHint(parallelism)
        emitted = {self._source: last}
        for bolt in list(self.components.values())[1:]:
            last = emitted[bolt.id] = self._add_steps(topology, emitted, bolt)
        return last

    def _add_steps(
        self, topology: TridentTopology, emitted: Mapping[str, Stream], bolt: _Declared
    ) -> Stream:
        if not bolt.taken:
            advice = "Say so by a grouping: setBolt(…).shuffleGrouping(component)."
            raise PlanError("the bolt takes no tuples:", bolt.id, (), advice)
        streams = []
        for component in dict.fromkeys(name for name, _ in bolt.taken):
            sources = [source_of(*taken) for taken in bolt.taken if taken[0] == component]
            streams.append(emitted[component].each(NAMES, Subscribed(sources)))
        merged = streams[0] if len(streams) == 1 else topology.merge(*streams)
        groupings = Groupings({source_of(*taken): how for taken, how in bolt.taken.items()})
        dealt = merged.partition(groupings)
        running = self._component(bolt)
        if bolt.commits:
            persisted = dealt.partitionPersist(
                CommitPhaseFactory(), NAMES, BoltUpdater(running), CARRIED, name=bolt.id
            )
            return persisted.newValuesStream()
        made = dealt.partitionAggregate(NAMES, BoltAggregator(running), CARRIED)
        return made.parallelismHint(bolt.tasks)

    def _component(self, bolt: _Declared) -> Component:
        taken = {
            source_of(name, stream): self.components[name].streams[stream]
            for name, stream in bolt.taken
        }
        consumers = {bolt.id: bolt.tasks} | {
            other.id: other.tasks
            for other in self.components.values()
            if any(name == bolt.id for name, _ in other.taken)
        }
        return Component(bolt.id, bolt.bolt, bolt.streams, Reader(taken), consumers)


class TransactionalTopologyBuilder:
    """Builds a topology of a transactional spout and bolts.

    Each bolt becomes a step that runs a copy of it over the tuples of a batch in each of its tasks;
    a committer bolt one that runs where states are updated. So the topology runs on both engines,
    with the log, the attempts and the order of batches of any other.

    Parameters
    ----------
    id : str
        The topology's id; the log keeps the spout's place under it.
    spoutId : str
        How bolts name the spout.
    spout : ITransactionalSpout, its relatives, or any other spout
        Emits the tuples, without the attempt, which is put before them.
    spoutParallelism : int, optional
        How many partitions the first bolts' tuples come in.

    Raises
    ------
    PlanError
        For an id in use, or what is no bolt.

    Examples
    --------
    >>> from trident.transactional import (
    ...     BaseBatchBolt, BaseTransactionalBolt, ICommitter, MemoryTransactionalSpout)
    >>> class Partial(BaseBatchBolt):
    ...     def prepare(self, conf, context, collector, id):
    ...         self.collector, self.id, self.count = collector, id, 0
    ...     def execute(self, tuple):
    ...         self.count += 1
    ...     def finishBatch(self):
    ...         self.collector.emit([self.id, self.count])
    ...     def declareOutputFields(self, declarer):
    ...         declarer.declare("id, count")
    >>> class Total(BaseTransactionalBolt, ICommitter):
    ...     def prepare(self, conf, context, collector, attempt):
    ...         self.attempt, self.count = attempt, 0
    ...     def execute(self, tuple):
    ...         self.count += tuple.getLongByField("count")
    ...     def finishBatch(self):
    ...         print(self.attempt.getTransactionId(), self.count)
    >>> spout = MemoryTransactionalSpout({0: [["a"], ["b"], ["c"]]}, "word string", 2)
    >>> builder = TransactionalTopologyBuilder("count", "words", spout)
    >>> _ = builder.setBolt("partial", Partial(), 3).noneGrouping("words")
    >>> _ = builder.setCommitterBolt("total", Total()).globalGrouping("partial")
    >>> with builder.buildTopology().start(trigger="available") as run:
    ...     _ = run.awaitTermination()
    1 2
    2 1
    """

    def __init__(
        self, id: str, spoutId: str, spout: Any, spoutParallelism: int | None = None
    ) -> None:
        self._id = id
        self._spout = spout
        self._parallelism = spoutParallelism
        fields = Fields.of(spout.getOutputFields())
        self._bolts = Bolts(spoutId, Fields("id", *fields.names))

    def setBolt(self, id: str, bolt: Bolt, parallelism: int = 1) -> BoltDeclarer:
        """Add a bolt; one that is an `ICommitter` runs in the commit phase.

        Parameters
        ----------
        id : str
            Its id.
        bolt : IBatchBolt or IBasicBolt
            The bolt; each attempt of a batch runs a copy.
        parallelism : int
            In how many tasks. A committer bolt runs in one, on the driver, whatever is given.
        """
        commits = isinstance(bolt, ICommitter)
        return self._bolts.add("setBolt", id, bolt, parallelism, commits=commits)

    def setCommitterBolt(self, id: str, bolt: IBatchBolt, parallelism: int = 1) -> BoltDeclarer:
        """Add a bolt that runs in the commit phase, whether it is an `ICommitter` or not.

        Parameters are those of `setBolt`.
        """
        return self._bolts.add("setCommitterBolt", id, bolt, parallelism, commits=True)

    def buildTopology(self) -> TridentTopology:
        """Return the topology, to be started.

        Raises
        ------
        PlanError
            For a bolt that takes no tuples.
        """
        topology = TridentTopology()
        stream = topology.newStream(self._id, self._spout)
        self._bolts.compile(topology, stream, self._parallelism)
        return topology
