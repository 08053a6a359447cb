"""Runs a topology batch by batch in a test, and takes it through what can go wrong."""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self
from uuid import uuid4
from weakref import finalize

from trident.api.start import on_spark
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryStore
from trident.backends.rows import Rows, RowsState
from trident.backends.rows.sqlite import SQLite
from trident.batch.engine import Engine
from trident.batch.progress import BatchProgress
from trident.batch.watchpoints import watching
from trident.drpc.service import LocalDRPC
from trident.errors import PlanError
from trident.plan.nodes import StateDeclaration, StateNode
from trident.plan.plan import Plan
from trident.plan.substitution import substitute
from trident.spouts.fixed import SimulatedCrash
from trident.states.backing_map import Codec
from trident.states.errors import FailedException
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.stored_map import StoredMap
from trident.states.values import Token
from trident.testing.points import check_point
from trident.testing.substitution import (
    Recorded,
    Trouble,
    TroubledStore,
    find_ends,
    recorded_plan,
)
from trident.testing.tested_group import FedSpout, TestClock, TestedGroup

_STEPS = ("begin", "write", "ready", "commit", "announce")


class Tester:
    """Runs a topology batch by batch, in this process and thread, and shows what became of it.

    Its streams are fed by the test, also those of streaming DataFrames, and its map states are kept
    in memory, with the serializers and kinds that they were declared with; rows are in a temporary
    file of SQLite. Nothing is started and nothing waits, so a test takes about a millisecond. The
    batches pass the same steps as in a run, on the same log and protocol, so they may be taken
    through failures: what is asked for by
    :meth:`crash`, :meth:`replay`, :meth:`write_late`, :meth:`cut_off_stores` or :meth:`reorder`
    happens to the batch that comes next.

    Parameters
    ----------
    topology : TridentTopology
        What to test. Nothing of it is changed; it need not run, and may.
    spark : SparkSession, optional
        Runs the batches there.
    stores : str
        ``"memory"``, or ``"declared"`` for the stores that the topology names.
    watch : iterable of Stream
        Streams whose tuples :meth:`emitted` tells, beside those that no other step takes.

    Raises
    ------
    PlanError
        For a step that the engine can't run.

    Examples
    --------
    >>> from trident import Count, FixedBatchSpout, MemoryMapState, Split, TridentTopology
    >>> topology = TridentTopology()
    >>> lines = topology.newStream("lines", FixedBatchSpout("line string", 1))
    >>> _ = (lines.each("line", Split(), "word").groupBy("word")
    ...     .persistentAggregate(MemoryMapState.Factory(), Count(), "count"))
    >>> tester = Tester(topology)
    >>> tester.crash(after="write")
    >>> _ = tester.feed("lines", "the cow and the dog")
    >>> tester.state("count")
    {'the': 2, 'cow': 1, 'and': 1, 'dog': 1}
    """

    __test__ = False  # for pytest, which would collect it by its name

    def __init__(
        self,
        topology: TridentTopology,
        spark: Any = None,
        *,
        stores: str = "memory",
        watch: Iterable[Stream] = (),
    ) -> None:
        if stores not in ("memory", "declared"):
            advice = "'memory' keeps states in memory, 'declared' where the topology says."
            raise PlanError("Tester: stores is", repr(stores), ("memory", "declared"), advice)
        self.progress: list[BatchProgress] = []
        """The progress of each batch; without those whose driver crashed after the commit."""
        self.clock = TestClock()
        """The time of batches, which passes by ``tester.clock.advance(seconds)`` alone."""
        self._trouble = Trouble()
        self._next = _Next()
        self._story = ["before the first batch"]
        self._recorded = Recorded()
        self._drpc: LocalDRPC | None = None
        before = topology.plan()
        in_memory = stores == "memory"
        self._tables = SQLite(f"{tempfile.gettempdir()}/trident_{uuid4().hex}.db")
        """Has the rows of tables, unless they are where the topology says."""
        self._unmade = finalize(self, _remove, self._tables)

        def tested(declared: StateDeclaration) -> StateDeclaration:
            if isinstance(declared.factory, Rows):
                if not in_memory:
                    return declared
                return replace(declared, factory=declared.factory.moved(self._tables))
            return _tested(declared, self._trouble, in_memory)

        by_spout = {"clock": "spout", "output_mode": "append", "history": None, "until": ""}
        copies = substitute(
            before.nodes,
            lambda node: {"source": FedSpout(node.declared, node.kind), **by_spout},
            tested,
        )
        watched = dict.fromkeys([*find_ends(before), *(stream._node for stream in watch)])
        self._plan = recorded_plan(copies, watched, self._recorded)
        engine = _engine(self._plan, spark)
        sources = {each.stream_id: each.source for g in before.groups for each in g.sources}
        self._groups = [
            TestedGroup(group, engine, sources, self.clock)
            for group in self._plan.groups
            if group.requests is None
        ]

    def __repr__(self) -> str:
        streams = [source.stream_id for group in self._plan.groups for source in group.sources]
        return f"Tester(streams={streams}, states={[n.state.name for n in self._plan.states]})"

    def feed(self, stream: str | Mapping[str, Iterable[Any]], *tuples: Any) -> BatchProgress | None:
        """Run one batch, and return when it is committed.

        Parameters
        ----------
        stream : str, or mapping of str to iterable
            The stream's id; or the tuples of several streams that share batches, by id.
        *tuples : sequence
            The tuples; of a stream with one field the values will do.

        Returns
        -------
        BatchProgress or None
            What was done; None if the driver crashed before it could report that, or nothing had
            to be run.

        Raises
        ------
        PlanError
            For a stream that isn't there, or streams that share no batches.
        Exception
            What the batch failed with, for good.
        """
        given = {stream: tuples} if isinstance(stream, str) else dict(stream)
        group = self._group(given)
        happening, self._next = self._next, _Next()
        for name, rows in given.items():
            group.fed[name].set_batch(list(rows), happening.others, happening.order)
        self._trouble.hold = happening.late
        self._recorded.begin()
        with watching(happening.watch):
            progress = group.run_fed()
        self._story = [f"after batch {group.committed} of {group.id}", *happening.story]
        self._trouble.deliver()
        if progress is not None:
            self.progress.append(progress)
        return progress

    def run(self) -> list[BatchProgress]:
        """Run all batches that the topology's own spouts have; return what was done.

        A `FixedBatchSpout` may have `Fail`, `Crash` and `Replay` among its tuples.

        Raises
        ------
        PlanError
            For a stream of a DataFrame, or one that was fed.
        Exception
            What a batch failed with, for good.
        """
        before = len(self.progress)
        for group in self._groups:
            for progress in group.run_declared():
                self.progress.append(progress)
            self._story = [f"after batch {group.committed} of {group.id}"]
        return self.progress[before:]

    def crash(self, *, before: str = "", after: str = "") -> None:
        """Let the driver crash when the next batch is at a step; another one then takes over.

        Parameters
        ----------
        before, after : str
            One of them: ``"begin"``, ``"write"``, ``"ready"``, ``"commit"`` or ``"announce"``.
        """
        point = _point("crash", before, after)
        self._next.at(point, SimulatedCrash(point), f"a crash {point}")

    def fail(self, *, before: str = "", after: str = "") -> None:
        """Let the first attempt of the next batch fail at a step, up to before the commit."""
        point = _point("fail", before, after)
        if _STEPS.index(point.split()[1]) > _STEPS.index("commit") or point == "after commit":
            raise ValueError(f"fail: {point!r} comes when the batch can't fail any more")
        self._next.at(point, FailedException(f"failed {point}"), f"a failure {point}")

    def replay(self, *tuples: Any) -> None:
        """Let the next batch fail when it is written, and its source emit it again.

        Parameters
        ----------
        *tuples : sequence
            The tuples that an opaque source emits then; by default the same. Of several streams
            that are fed each emits them.
        """
        self.fail(after="write")
        self._next.others = list(tuples) or None
        self._next.story[-1] = "a replay, " + ("with other tuples" if tuples else "with the same")

    def write_late(self) -> None:
        """Let the first attempt of the next batch hang when it writes; that arrives at the end.

        A state that refuses late writes is not changed by it.
        """
        self._next.late = True
        self._next.story.append("a late write")

    def cut_off_stores(self, calls: int = 1) -> None:
        """Let the next `calls` of stores find the store away; the batch waits and goes on."""
        self._trouble.away = calls

    def reorder(self, seed: int = 0) -> None:
        """Let the tuples of the next batch come in another order, in each attempt another one."""
        self._next.order = random.Random(seed)

    def state(self, name: str) -> Any:
        """Return what a state holds, as of the last committed batch.

        Returns
        -------
        dict, value, list or State
            Of a map the values by key, where the key is the value of one field or a tuple of
            several; of an aggregate without groups the value; of a table its rows, as tuples in the
            order of the key; any other state itself.

        Raises
        ------
        PlanError
            When there is no state of that name.
        """
        node = self._state_node(name)
        state = node.state.factory.makeState()
        if isinstance(state, RowsState):
            return state.rows()
        if not isinstance(state, StoredMap):
            return state
        try:
            if node.keeps_one_value:
                return state.get()
            rows = state.getTuples()
            return {key[0] if len(key) == 1 else tuple(key): value for *key, value in rows}
        finally:
            state.close()

    def assert_state(self, name: str, expected: Any) -> None:
        """Compare a state with what is expected.

        Raises
        ------
        AssertionError
            When they differ: with the batch, what happened to it, the step that updates the state,
            and both contents side by side.
        """
        found = self.state(name)
        if found != expected:
            raise AssertionError(self._difference(name, expected, found))

    def emitted(self, stream: Stream) -> list[tuple[Any, ...]]:
        """Return the tuples that a step emitted in the last batch, all partitions in turn.

        Raises
        ------
        PlanError
            For a stream whose tuples other steps take, and that was not watched.
        """
        found = self._recorded.tuples.get(stream._node)
        if found is None:
            advice = "Name it when the tester is made: Tester(topology, watch=[stream])."
            what = "emitted: the tester does not watch the stream of"
            raise PlanError(what, stream._node.call_text, (), advice)
        return list(found)

    def query(self, function: str, args: str = "", timeout: float | None = None) -> Any:
        """Return the answer of a query: a list of tuples, each a list of values.

        `timeout` is that of `LocalDRPC.execute`, for a query that Spark answers.
        """
        if self._drpc is None:
            self._drpc = LocalDRPC(self._plan, on_spark=on_spark())
        return json.loads(self._drpc.execute(function, args, timeout))

    def close(self) -> None:
        """Close what was opened; may be repeated. Of use for declared stores and on Spark."""
        with ExitStack() as closing:
            for group in self._groups:
                closing.callback(group.close)
            if self._drpc is not None:
                closing.callback(self._drpc.close)
            closing.callback(self._unmade)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _group(self, given: Mapping[str, Any]) -> TestedGroup:
        known = [name for group in self._groups for name in group.fed]
        for name in given:
            if name not in known:
                raise PlanError("feed: there is no stream", repr(name), tuple(known))
        for group in self._groups:
            if given.keys() <= group.fed.keys():
                return group
        advice = "Feed one after the other."
        raise PlanError("feed: these streams share no batches:", ", ".join(given), (), advice)

    def _state_node(self, name: str) -> StateNode:
        for node in self._plan.states:
            if node.state.name == name:
                return node
        known = [node.state.name for node in self._plan.states]
        raise PlanError("state: there is no state", repr(name), tuple(known))

    def _difference(self, name: str, expected: Any, found: Any) -> str:
        node = self._state_node(name)
        lines = [
            f"state {name!r} {'; '.join(self._story)}",
            f"step {node.call_text} at {node.origin}",
        ]
        if not isinstance(expected, Mapping) or not isinstance(found, Mapping):
            return "\n".join([*lines, f"expected {expected!r}", f"found    {found!r}"])
        shown = [("key", "expected", "found")]
        for key in {**expected, **found}:
            left, right = (repr(side[key]) if key in side else "" for side in (expected, found))
            shown.append((repr(key), left, right + ("  <-" if left != right else "")))
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        for row in shown:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


class _Next:
    """What happens to the next batch."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.others: list[Any] | None = None
        self.order: random.Random | None = None
        self.late = False
        self._raised: dict[str, BaseException] = {}

    def at(self, point: str, error: BaseException, what: str) -> None:
        self._raised[point] = error
        self.story.append(what)

    def watch(self, point: str, token: Token) -> None:
        error = self._raised.pop(point, None)
        if error is not None:
            raise error


def _engine(plan: Plan, spark: Any) -> Engine[Any]:
    if spark is None:
        from trident.local.local_engine import LocalEngine

        return LocalEngine(plan)
    from trident.spark.spark_engine import SparkEngine  # pyspark is optional

    return SparkEngine(plan, spark, "spark")


def _remove(tables: SQLite) -> None:
    """Remove a database of SQLite, if it was made."""
    if os.path.exists(tables.path):
        tables.engine.dispose()
        for end in ("", "-wal", "-shm"):
            Path(tables.path + end).unlink(missing_ok=True)


def _tested(declared: StateDeclaration, trouble: Trouble, in_memory: bool) -> StateDeclaration:
    """Put the trouble between a map state and its store."""
    factory = declared.factory
    if not isinstance(factory, MapStateFactory):
        return declared
    store, codec = factory.store, None
    if in_memory:
        codec = None if isinstance(store, MemoryStore) else Codec.BYTES
        store = MemoryStore(uuid4().hex)
    tested = MapStateFactory(
        TroubledStore(store, trouble, codec),
        factory.kind,
        factory.serializer,
        snapshot_key=factory.snapshot_key,
        key_factory=factory.key_factory,
        schema=factory.schema,
    )
    return replace(declared, factory=tested)


def _point(call: str, before: str, after: str) -> str:
    if bool(before) == bool(after):
        raise ValueError(f"{call}: name one step, {call}(before=…) or {call}(after=…): {_STEPS}")
    point = f"before {before}" if before else f"after {after}"
    check_point(point)
    return point
