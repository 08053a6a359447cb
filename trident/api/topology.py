"""Where a topology begins: its streams, its queries, and its start."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Never, TypeVar, overload

from trident.api.stream import GroupedStream, Stream, TridentState, check_not_updated
from trident.backends.state_spec import StateLike
from trident.batch.start_options import EngineChoice, OnFailure, StartOptions, Trigger
from trident.drawing.mermaid import to_mermaid
from trident.drawing.svg import to_svg
from trident.errors import OperationTypeError, PlanError, described
from trident.job.explain import explain
from trident.job.plan_dict import to_dict
from trident.operations.absent_calls import Published
from trident.operations.interfaces import GroupedMultiReducer, MultiReducer
from trident.operations.joining import JoinOutFieldsMode, JoinType
from trident.plan import lowering
from trident.plan.arguments import read_join, read_multi_reduce
from trident.plan.builder import Builder
from trident.plan.multi_reduce import multi_reduce
from trident.plan.nodes import (
    Kind,
    MergeNode,
    OnError,
    OutputMode,
    QueryEngine,
    StaticStateNode,
)
from trident.plan.plan import Plan
from trident.states.tracebacks import Briefly
from trident.tuples.fields import Fields, FieldsLike

if TYPE_CHECKING:
    from trident.api.run import Run
    from trident.batch.adopt import Adopt
    from trident.server.server import DRPCServer

_logger = logging.getLogger("trident")

Grouped = TypeVar("Grouped", Stream, GroupedStream)
"""Of what ``multiReduce`` takes two or more: streams, or streams of groups."""
AnyReducer = MultiReducer[Any] | GroupedMultiReducer[Any]


class TridentTopology(Published):
    """Declares streams, states and queries, and starts them.

    Declaring runs nothing. A topology may be started again when its run has ended; a second run
    beside it is declared by itself, with a checkpoint and states of its own.

    Examples
    --------
    >>> from trident import Count, FixedBatchSpout, MemoryMapState, Split, TridentTopology
    >>> topology = TridentTopology()
    >>> counts = (
    ...     topology.newStream("sentences", FixedBatchSpout("sentence string", 3, ["the cow"]))
    ...     .each("sentence", Split(), "word")
    ...     .groupBy("word")
    ...     .persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    ... )
    >>> counts.name
    'count'
    """

    def __init__(self) -> None:
        self._builder = Builder()
        self._run: Run | None = None

    @property
    def isActive(self) -> bool:
        """Whether a run of it is active in this process."""
        return self._run is not None and self._run.isActive

    def newStream(
        self,
        id: str,
        source: Any,
        kind: Kind | None = None,
        *,
        outputMode: OutputMode | None = None,
        partitionFields: FieldsLike | None = None,
        history: Any = None,
        until: Mapping[str, Any] | None = None,
    ) -> Stream:
        """Begin a stream.

        Parameters
        ----------
        id : str
            Its id, unique in the topology; the log keeps the stream's place under it.
        source : DataFrame, IBatchSpout or ITridentSpout
            A *streaming* DataFrame, or a spout.
        kind : str, optional
            ``"opaque"``, ``"transactional"`` or ``"non-transactional"``: how a batch is replayed.
            By default what the spout says, which can only be made weaker, and ``"opaque"`` for a
            DataFrame.
        outputMode : str, optional
            For a DataFrame that aggregates, as in Structured Streaming, which of its rows are a
            batch: ``"append"`` (default) those that can't change any more, ``"update"`` those
            that changed, ``"complete"`` all. The streams of a batch group have one.
        partitionFields : Fields, str, or iterable of str, optional
            For a DataFrame the columns that tell from which partition of its source a row comes:
            windows by a time of tuples wait for the slowest. By default `topic` and `partition` of
            a DataFrame that has Kafka's columns; of others the stream is one partition.
        history : DataFrame, optional
            Beside a streaming DataFrame a batch one, with the same fields, whose rows come first:
            they are in the first batch of a new checkpoint, with the first rows of the stream, and
            have no effect at later starts.
        until : mapping, optional
            Where the history ends and the stream begins: a column and a value, as ``{"at":
            datetime(2026, 1, 31, tzinfo=UTC)}``, or offsets of Kafka, as ``{"clicks": {"0":
            81200}}``. Both may have more than their part: rows before that place are taken from
            the history, and those at it, behind it, or with null, from the stream, now and at all
            later starts. Without it both are taken as they are.

        Returns
        -------
        Stream
            Of the source's fields.

        Raises
        ------
        PlanError
            For an id in use, an invalid source, a batch DataFrame, an unknown kind or output mode,
            an option for DataFrames with a spout, a history that doesn't fit the stream, an `until`
            that doesn't fit its fields.
        FieldError
            For a partition's field that the DataFrame hasn't got.
        """
        given = id, source, kind, outputMode, partitionFields, history, until
        return Stream(self._builder, lowering.new_stream(self._builder, *given))

    def newDRPCStream(
        self, function: str, *, answers: StateLike | None = None, engine: QueryEngine = "local"
    ) -> Stream:
        """Begin a query: ``run.drpc.execute(function, args)`` gives it one tuple, ``args``.

        The answer is the output of the step that is declared last on this stream. A query runs in
        the process that is asked, and reads committed batches only.

        Parameters
        ----------
        function : str
            Its name.
        answers : StateFactory, its URL, or StateSpec, optional
            Where the answers to requests are kept, in an opaque map, where the stream updates a
            state: a request that comes again with its id is answered with what is kept, and not
            applied again.
        engine : str
            ``"spark"`` answers each request by a Spark job, from that process: for a query that
            reads much, such as the rows of `newStaticStream`. A job takes a tenth of a second and
            more, so give ``timeout=`` where a request may take longer than 5 seconds; one whose
            time is over is cancelled. Tuples of an answer are in no order. States are looked up
            in the process itself, by one step at most where batches update them. It runs in the
            session of its DataFrames, else in the one that the topology was started with, else in
            the active one.

        Raises
        ------
        PlanError
            For a name that is invalid or in use, an unknown engine, a map that isn't opaque, or
            ``answers=`` for a query that updates no state.

        Examples
        --------
        >>> from trident import MemoryMapState, Sum, TridentTopology
        >>> def parsed(args):
        ...     name, amount = args.split()
        ...     return [(name, int(amount))]
        >>> topology = TridentTopology()
        >>> _ = (topology.newDRPCStream("deposit", answers=MemoryMapState.Factory())
        ...     .each("args", parsed, "name, amount")
        ...     .groupBy("name")
        ...     .persistentAggregate(MemoryMapState.Factory(), "amount", Sum(), "balance"))
        >>> with topology.start() as run:
        ...     for id in ("1", "1", "2"):
        ...         print(run.drpc.execute("deposit", "ann 5", request_id=id))
        [["ann",5]]
        [["ann",5]]
        [["ann",10]]
        """
        node = lowering.new_drpc_stream(self._builder, function, answers, engine)
        return Stream(self._builder, node)

    def newStaticStream(self, frame: Any) -> Stream:
        """Begin a stream of the rows of a batch DataFrame, which a query joins with its arguments.

        For one query of ``newDRPCStream(…, engine="spark")``. The DataFrame is read for each
        request anew, so ``cache()`` one that is worth it.

        Parameters
        ----------
        frame : DataFrame
            Made by ``spark.read``, ``spark.createDataFrame`` and so on.

        Returns
        -------
        Stream
            Of the DataFrame's columns.

        Raises
        ------
        OperationTypeError
            For another object than a DataFrame, or a streaming one.

        Examples
        --------
        >>> from trident import Count, TridentTopology
        >>> from trident.spark import local_session
        >>> spark = local_session()
        >>> rows = [("a.com", "ann"), ("a.com", "ben")]
        >>> tweets = spark.createDataFrame(rows, "url string, who string")
        >>> topology = TridentTopology()
        >>> asked = topology.newDRPCStream("tweeters", engine="spark")
        >>> _ = topology.join(
        ...     asked, "args", topology.newStaticStream(tweets), "url", "url, who"
        ... ).aggregate(Count(), "count")
        >>> with topology.start() as run:
        ...     run.drpc.execute("tweeters", "a.com", timeout=60)
        '[[2]]'
        """
        return Stream(self._builder, lowering.new_static_stream(self._builder, frame))

    def newStaticState(self, state: StateLike, *, name: str | None = None) -> TridentState:
        """A state that this topology queries and never updates.

        Parameters
        ----------
        state : StateFactory, its URL, or StateSpec
            Makes the state.
        name : str, optional
            Its name, unique in the topology and the default prefix in the store; by default
            ``"state"``.
        """
        check_not_updated("newStaticState", state)
        with Briefly():
            declaration = self._builder.state("newStaticState", state, name, ())
        return TridentState(self._builder, self._builder.add(StaticStateNode, state=declaration))

    @overload
    def merge(self, *streams: Stream, outputs: FieldsLike | None = None) -> Stream: ...
    @overload
    def merge(self, outputs: FieldsLike, /, *streams: Stream) -> Stream: ...
    @overload
    def merge(
        self, streams: Sequence[Stream], /, *, outputs: FieldsLike | None = None
    ) -> Stream: ...
    @overload
    def merge(self, outputs: FieldsLike, streams: Sequence[Stream], /) -> Stream: ...
    def merge(self, *streams: Any, outputs: FieldsLike | None = None) -> Stream:
        """All tuples of several streams: ``merge([outputs,] stream, stream, …)``.

        Fields go by position; they are named by ``outputs``, else as in the first stream.

        Parameters
        ----------
        *streams : Stream
            Two or more of this topology, or one list of them.
        outputs : fields, optional
            The names of the fields, before the streams or as ``outputs=``.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> topology = TridentTopology()
        >>> one = topology.newStream("one", FixedBatchSpout("a string, b long", 3))
        >>> other = topology.newStream("other", FixedBatchSpout("c string, d", 3))
        >>> topology.merge(one, other).getOutputFields()
        Fields('a string, b')
        """
        given = list(streams)
        if given and isinstance(given[0], Fields | str):
            outputs = given.pop(0)
        if len(given) == 1 and isinstance(given[0], list | tuple):
            given = list(given[0])
        if len(given) < 2:
            raise PlanError("merge: expected two streams or more, found", str(len(given)))
        advice = "Write merge(one, other), of streams without groups."
        self._check_own("merge", given, advice, Stream)
        merged = tuple(stream._node for stream in given)
        names = None if outputs is None else Fields.of(outputs)
        return Stream(self._builder, self._builder.add(MergeNode, parents=merged, outputs=names))

    @overload
    def join(
        self,
        one: Stream,
        oneFields: FieldsLike,
        other: Stream,
        otherFields: FieldsLike,
        outputs: FieldsLike,
        type: JoinType | Sequence[JoinType] = ...,
        mode: JoinOutFieldsMode = ...,
        *,
        on_error: OnError | None = None,
    ) -> Stream: ...
    @overload
    def join(
        self,
        one: Stream,
        oneFields: FieldsLike,
        other: Stream,
        otherFields: FieldsLike,
        outputs: FieldsLike,
        mode: JoinOutFieldsMode,
        *,
        on_error: OnError | None = None,
    ) -> Stream: ...
    @overload
    def join(
        self,
        streams: Sequence[Stream],
        fields: Sequence[FieldsLike],
        outputs: FieldsLike,
        type: JoinType | Sequence[JoinType] = ...,
        mode: JoinOutFieldsMode = ...,
        *,
        on_error: OnError | None = None,
    ) -> Stream: ...
    @overload
    def join(
        self,
        streams: Sequence[Stream],
        fields: Sequence[FieldsLike],
        outputs: FieldsLike,
        mode: JoinOutFieldsMode,
        *,
        on_error: OnError | None = None,
    ) -> Stream: ...
    def join(self, *arguments: Any, on_error: OnError | None = None, **named: Any) -> Stream:
        """Put tuples of several streams together that have equal keys, within each batch:
        ``join(one, fields, other, fields, outputs [, type] [, mode])``, or
        ``join([stream, …], [fields, …], outputs [, type] [, mode])``.

        Spark joins by itself; elsewhere each stream of a partition is put into a hash table.

        Parameters
        ----------
        one, other, streams : Stream
            Two or more streams of this topology, without groups.
        fields : fields
            The key's fields in each stream, as many in each; they are compared by position and are
            of one type. A key with null in it equals none, where Trident's null equals null.
        outputs : fields
            Names of all fields that come out, by position; see `JoinOutFieldsMode`.
        type : JoinType, or one for each stream
            Which of the streams may be missing; by default none.
        mode : JoinOutFieldsMode
            Whether a key comes out once, which is the default, or with each stream.
        on_error : str, optional
            What becomes of a tuple whose key can't be compared, as a number of more than 64 bits:
            ``"skip"`` and ``"dead-letter"`` as for `Stream.each`. The keys are tried by a step of
            Python before the join. The default of the start has no part in it.

        Examples
        --------
        >>> from trident import FixedBatchSpout, JoinType, TridentTopology
        >>> topology = TridentTopology()
        >>> clicks = topology.newStream("clicks", FixedBatchSpout("ad string, user long", 3))
        >>> ads = topology.newStream("ads", FixedBatchSpout("id string, shop string", 3))
        >>> left = JoinType.mixed(JoinType.INNER, JoinType.OUTER)
        >>> topology.join(clicks, "ad", ads, "id", "ad, user, shop", left).getOutputFields()
        Fields('ad string, user long, shop string')
        """
        pairs = "one" in named or (bool(arguments) and isinstance(arguments[0], Stream))
        streams, keys, rest = read_join(arguments, named, pairs)
        advice = "Write join(one, key, other, key, outputs) or join([one, …], [key, …], outputs)."
        for each in (streams, keys):
            if not isinstance(each, list | tuple):
                what = "join: expected a list of streams, and one of their keys, found"
                raise OperationTypeError(what, described(each), (), advice)
        self._check_own("join", streams, advice, Stream)
        joined = tuple(stream._node for stream in streams)
        node = lowering.join(self._builder, joined, keys, rest, on_error)
        return Stream(self._builder, node)

    @overload
    def multiReduce(
        self, one: Grouped, other: Grouped, reducer: AnyReducer, outputs: FieldsLike
    ) -> Stream: ...
    @overload
    def multiReduce(
        self,
        oneFields: FieldsLike,
        one: Grouped,
        otherFields: FieldsLike,
        other: Grouped,
        reducer: AnyReducer,
        outputs: FieldsLike,
    ) -> Stream: ...
    @overload
    def multiReduce(
        self, streams: Sequence[Grouped], reducer: AnyReducer, outputs: FieldsLike
    ) -> Stream: ...
    @overload
    def multiReduce(
        self,
        fields: Sequence[FieldsLike],
        streams: Sequence[Grouped],
        reducer: AnyReducer,
        outputs: FieldsLike,
    ) -> Stream: ...
    def multiReduce(self, *arguments: Any, **named: Any) -> Stream:
        """Reduce the tuples of several streams together, within each batch:
        ``multiReduce(one, other, reducer, outputs)``, ``multiReduce(fields, one, fields, other,
        reducer, outputs)``, ``multiReduce([stream, …], reducer, outputs)`` or
        ``multiReduce([fields, …], [stream, …], reducer, outputs)``.

        All tuples of streams without groups meet in one partition; those of groups in the
        partition of their group. Trident reduces what is in the same task of each stream.

        Parameters
        ----------
        one, other, streams : Stream, or GroupedStream
            Two or more of this topology, all with groups or all without. The fields of their groups
            are compared by position.
        fields : fields, optional
            What the reducer sees of a stream; by default all of its fields.
        reducer : MultiReducer, or GroupedMultiReducer for groups
            Runs once a batch, or a group of it.
        outputs : fields
            What it emits; nothing else comes out.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> from trident.storm import MultiReducer
        >>> class Difference(MultiReducer):
        ...     output_types = [int]
        ...     def init(self, collector):
        ...         return [0, 0]
        ...     def execute(self, state, streamIndex, input, collector):
        ...         state[streamIndex] += 1
        ...     def complete(self, state, collector):
        ...         collector.emit([state[0] - state[1]])
        >>> topology = TridentTopology()
        >>> one = topology.newStream("one", FixedBatchSpout("a string", 3))
        >>> other = topology.newStream("other", FixedBatchSpout("b long, c long", 3))
        >>> topology.multiReduce(one, other, Difference(), "more").getOutputFields()
        Fields('more long')
        """
        advice = "Write multiReduce(one, other, reducer, outputs), or lists in their place."
        given, reducer, outputs = read_multi_reduce(arguments, named, advice)
        if len(given) <= 2 and all(isinstance(part, list | tuple) for part in given):
            streams = given[-1]
            fields = given[0] if len(given) == 2 else [None] * len(streams)
        elif any(isinstance(part, Stream | GroupedStream) for part in given[:1]):
            streams, fields = given, [None] * len(given)
        else:
            streams, fields = given[1::2], given[::2]
        if len(streams) < 2 or len(fields) != len(streams):
            what = "multiReduce: expected two streams or more, and fields of each if any, found"
            found = f"{len(streams)} streams and fields of {len(fields)}"
            raise PlanError(what, found, (), advice)
        self._check_own("multiReduce", streams, advice, Stream | GroupedStream)
        inputs = [
            Fields(*stream._node.fields.names) if seen is None else Fields.of(seen)
            for stream, seen in zip(streams, fields, strict=True)
        ]
        positions = [stream._position for stream in streams]
        node = multi_reduce(positions, inputs, reducer, Fields.of(outputs))
        return Stream(self._builder, node)

    def _check_own(self, call: str, streams: Sequence[Any], advice: str, kinds: Any) -> None:
        """Refuse what is not a stream of this topology."""
        for stream in streams:
            if not isinstance(stream, kinds) or stream._builder is not self._builder:
                what = f"{call}: expected a stream of this topology, found"
                raise OperationTypeError(what, type(stream).__name__, (), advice)

    def plan(self) -> Plan:
        """What has been declared so far, immutable."""
        return self._builder.plan()

    def explain(self, spark: Any = None) -> str:
        """The plan as text: a line a step, the stages and exchanges of the jobs that run it, the
        states, guarantees and why, where each state is kept, and what a batch asks of its store.

        A group of spouts has a job in this process and, with a session, another one on Spark; the
        one on Spark is listed. What ``start`` would refuse is listed with the reason. Given a
        session, the first line says which Spark that is, and what follows from it.
        """
        shown = explain(self.plan())
        if spark is None:
            return shown
        from trident.spark.access import describe_session  # pyspark is optional

        return f"{describe_session(spark)}\n{shown}"

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values: groups, queries, nodes and states.

        Their ids are the same whenever the same program runs.
        :func:`trident.job.plan_dict.to_dict` lists what each holds.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> topology = TridentTopology()
        >>> _ = topology.newStream("words", FixedBatchSpout("word string", 3)).shuffle()
        >>> [(node["id"], node["text"], node["stage"]) for node in topology.to_dict()["nodes"]]
        [(1, 'newStream("words", FixedBatchSpout)', 1), (2, 'shuffle()', 2)]
        """
        return to_dict(self.plan())

    def to_mermaid(self) -> str:
        """The plan as a Mermaid flowchart."""
        return to_mermaid(self.to_dict())

    def to_svg(self) -> str:
        """The plan as a drawing: stages, exchanges, states and queries, in light and dark.

        Examples
        --------
        >>> from trident import FixedBatchSpout, TridentTopology
        >>> topology = TridentTopology()
        >>> _ = topology.newStream("words", FixedBatchSpout("word string", 3)).shuffle()
        >>> topology.to_svg()[:34]
        '<svg xmlns="http://www.w3.org/2000'
        """
        return to_svg(self.to_dict())

    def __repr__(self) -> str:
        plan = self.plan()
        streams = [source.stream_id for group in plan.groups for source in group.sources]
        states = [node.state.name for node in plan.states]
        named = {"streams": streams, "queries": [*plan.drpc], "states": states}
        shown = ", ".join(f"{kind}={names}" for kind, names in named.items() if names)
        return f"TridentTopology({shown})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the drawing, and the states."""
        from trident.page.notebook import topology_html

        return topology_html(self.to_dict())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The same, and the explanation where only text can be shown."""
        return {"text/plain": self.explain(), "text/html": self._repr_html_()}

    def start(
        self,
        spark: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        trigger: Trigger = None,
        retries: int = 3,
        on_failure: OnFailure = "stop",
        patience: float = 600.0,
        adopt: Adopt | None = None,
        accept_loss: Mapping[str, int] = MappingProxyType({}),
        accept_change: Mapping[str, str] = MappingProxyType({}),
        engine: EngineChoice = "auto",
        max_pending: int = 1,
        spark_checkpoint: str | os.PathLike[str] | None = None,
        hosted: Literal["driver"] | None = None,
        on_error: OnError = "fail",
        max_errors: float | None = None,
        dead_letters: StateLike | None = None,
        **mistyped: Never,
    ) -> Run:
        """Run the topology.

        Parameters
        ----------
        spark : SparkSession, optional
            Where to run; without it this process, without a JVM.
        checkpoint : str or path, optional
            The folder of the log, or a URL of Redis, ZooKeeper or an object store, where a driver
            on any machine finds it; without it a temporary one, and nothing can be resumed.
        trigger : float or "available", optional
            Seconds from the begin of a batch to that of the next, or ``"available"``: all there is
            now, then end. By default, and with 0, the next batch begins when one is done.
        retries : int
            How often a failed batch is tried again.
        on_failure : str
            What follows then: ``"stop"`` keeps the batch for the next start, ``"dead-letter"``
            commits it without any update.
        patience : float
            How many seconds a batch waits for a store, or the log's disk, that is away; by
            default 10 minutes. Such a batch has not failed: it is tried again after growing
            pauses, whatever `retries` and `on_failure` say, and kept when the run stops at last.
            Counted from the first failure of a batch to the begin of its last attempt, so give
            more than a batch takes. A store that is away when the topology starts is not waited
            for.
        adopt : Adopt, optional
            Whose state a new checkpoint takes over, once: that of an older checkpoint, of a lost
            one, or Storm's.
        accept_loss : mapping of str to int, optional
            ``{"count": 5}`` goes on although the state ``count`` has lost writes of batch 5 that
            were committed, as the error that stopped the run said. It is kept in the log, and has
            no effect on any other batch.
        accept_change : mapping of str to str, optional
            ``{"count": "Sum of n long by word string as long"}`` goes on although the state, or
            the stream, of that name was something else, as the error that refused the start said.
            What it has become is kept in the log, and has to stay so.
        engine : str
            With a session, ``"auto"`` runs each batch of spouts where batches of its size took
            less so far: in this process or on Spark. Of the first ten some try both; later tries
            take 3 % of the time at most. ``"spark"`` runs all of them there. `explain()` says which
            groups always do; `BatchProgress.engine` which engine it was.
        max_pending : int
            How many batches may be emitted and not committed, as Storm's
            ``topology.max.spout.pending``. With more than 1 the next batches are emitted and
            computed while one is written to its states, which pays where a store makes one wait.
            States still see one batch after the other, in order. What is computed waits in memory:
            before it would exceed 256 MiB the source waits. `explain()` names the groups whose
            batches run one at a time all the same: with a session those whose states are updated on
            executors. A spout's ``emitBatch`` is then called for a batch before ``ack`` or
            ``success`` for the one before; where that one fails, it is called once more for the
            same attempt. Batches of DataFrames are staged in the checkpoint until they are
            committed: the next start, with whatever `max_pending`, commits them first.
        spark_checkpoint : str or path, optional
            Beside a checkpoint by URL, where a stream is a DataFrame: the folder of Spark's own
            checkpoint and of staged batches. Its URL on a file system that Spark knows, such as
            ``"s3a://bucket/words"``; or a path that is mounted on each machine where the driver may
            run.
        hosted : str, optional
            ``"driver"``: this process updates and asks all states, whatever each says. For clusters
            whose tasks do not reach the stores, as serverless ones.
        on_error : str
            What becomes of a tuple that a function or filter fails with, if the step doesn't say:
            ``"fail"`` stops the run, ``"skip"`` leaves the tuple out and counts it
            (`BatchProgress.bad_tuples`), ``"dead-letter"`` keeps it in `dead_letters` as well.
        max_errors : float, optional
            The share of bad tuples above which the run stops all the same, with the batch kept:
            ``0.01`` is one of a hundred. Counted over the last 1,000 tuples or more that steps with
            an `on_error` were given.
        dead_letters : StateFactory, URL, StateSpec or Rows, optional
            Where dead letters are kept, each once, as part of their batch: a map, by batch and
            number; a table of rows, whose URL ends with ``?table=letters``; a topic,
            ``kafka://host:9092/letters``; or a folder, ``file:letters``, by batch. Each group has a
            state of its own, ``dead_letters.`` and its id.

        Returns
        -------
        Run
            A handle, and a context manager that stops the run.

        Raises
        ------
        PlanError
            For arguments out of range, a plan with nothing to run or one that runs already, or a
            step that the engine can't run.
        ChangedTopologyError
            For a checkpoint of a topology that was another one.

        Warns
        -----
        GuaranteeWarning
            For each state that can't be exact.
        """
        for option in mistyped:
            known = [*signature(TridentTopology.start).parameters][1:-1]
            raise PlanError("start: there is no option", option, known)
        if self.isActive:
            advice = (
                "Call stop() on what its start() returned. To run it twice, declare a second one, "
                "with a checkpoint and states of its own."
            )
            raise PlanError("start: this topology runs already", "", (), advice)
        options = StartOptions(
            checkpoint=checkpoint,
            trigger=trigger,
            retries=retries,
            on_failure=on_failure,
            patience=patience,
            adopt=adopt,
            accept_loss=accept_loss,
            accept_change=accept_change,
            engine=engine,
            max_pending=max_pending,
            spark_checkpoint=spark_checkpoint,
            hosted=hosted,
            on_error=on_error,
            max_errors=max_errors,
            dead_letters=dead_letters,
        )
        with Briefly():
            from trident.api.start import start  # what declares a topology needs no engine

            self._run = start(self.plan(), spark, options)
        return self._run

    def serve(self, host: str = "127.0.0.1", port: int | None = 3774, **options: Any) -> DRPCServer:
        """Answer the topology's queries over HTTP and Thrift without running it.

        In any number of processes, beside the one of the run: each opens the states for reading,
        so they are in stores that all of them reach. Call ``stop()`` on what it returns, which is a
        context manager too.

        Parameters
        ----------
        host, port, **options
            Those of `DRPCServer`, which lists the errors as well.

        Returns
        -------
        DRPCServer
            The server, which listens already.
        """
        from trident.server.server import DRPCServer  # its packages are optional

        with Briefly():
            return DRPCServer(self, host, port, **options).start()
