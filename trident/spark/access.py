"""What is asked of a session otherwise than by DataFrames: of its JVM, or by Spark Connect."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from trident.spark.versions import (
    checkpoint_at_server,
    copy_settings,
    end_session,
    is_connect,
    name_of,
    session_of_server,
)

_LOCAL = re.compile(r"local(\[.*\])?")
Names = tuple[str, ...]
_ROWS = 10_000
"""More than the tasks that Spark makes where nothing else is said, on any cluster."""


class Classic:
    """A session of a JVM that this process talks to."""

    kind = "classic"

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._context = session.sparkContext

    @property
    def workers(self) -> object:
        """What has the workers: one object for all sessions that share them."""
        return self._context

    @property
    def python(self) -> str:
        """The program that workers run."""
        return self._context.pythonExec

    @property
    def is_local(self) -> bool:
        """Whether the workers run on this machine."""
        return _LOCAL.fullmatch(str(self._context.master)) is not None

    @property
    def jvm(self) -> Any:
        """Spark's JVM; None if a server has it."""
        return self._context._jvm

    @property
    def parallelism(self) -> int:
        """How many tasks Spark makes where nothing else is said."""
        return self._context.defaultParallelism

    @property
    def is_stopped(self) -> bool:
        """Whether nothing runs on the session any more."""
        return self._context._jsc is None

    def ask_workers(self, modules: Names, packages: Names) -> list[dict[str, Any]]:
        """Return the report of each task about its worker; see `_worker_reporter`."""
        tasks = self.parallelism  # one for each core, so that all workers run one
        asks = _worker_reporter(modules, packages)
        return list(self._context.parallelize(range(tasks), tasks).mapPartitions(asks).collect())

    def own_session(self) -> SparkSession:
        """A new session with the user's settings."""
        session = self._session.newSession()
        copy_settings(self._session, session)
        return session

    def end(self) -> None:
        """End a session of the engine's own, which holds nothing here."""

    def checkpoint_frame(self, frame: DataFrame, *, eager: bool = True) -> DataFrame:
        """The frame, checkpointed: the loss of a block fails the attempt."""
        return frame.localCheckpoint(eager=eager)

    def release(self, frame: DataFrame) -> None:
        """Remove the rows of a frame that is kept; Spark would too, but much later."""
        if not self.is_stopped:
            rdd = frame._jdf.queryExecution().analyzed().rdd()
            # RDD.unpersist would warn that nothing can make the rows again.
            self._context._jsc.sc().unpersistRDD(rdd.id(), False)

    def partitions_of(self, frame: DataFrame) -> int:
        """How many partitions the plan of a frame has, 0 if unknown."""
        return _plan_partitions(frame._jdf.queryExecution().executedPlan())


class Connect:
    """A session of a server."""

    kind = "Spark Connect"
    jvm = None
    python = "of its server"
    is_local = False

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self.workers: object = session

    @property
    def is_stopped(self) -> bool:
        """Whether nothing runs on the session any more."""
        return bool(cast(Any, self._session).is_stopped)

    @property
    def parallelism(self) -> int:
        """How many tasks Spark makes where nothing else is said."""
        if self._session not in _parallelism:
            self.ask_workers((), ())
        return _parallelism[self._session]

    def ask_workers(self, modules: Names, packages: Names) -> list[dict[str, Any]]:
        """Return the report of each task about its worker; see `_worker_reporter`."""
        asks = _arrow_worker_reporter(modules, packages)
        reports = self._session.range(_ROWS).mapInArrow(asks, "report string")
        answers = [json.loads(row.report) for row in reports.collect()]
        _parallelism[self._session] = len(answers)
        return answers

    def own_session(self) -> SparkSession:
        """A new session with the user's settings."""
        return session_of_server(self._session)

    def end(self) -> None:
        """End a session of the engine's own, and what the server keeps for it."""
        end_session(self._session)

    def checkpoint_frame(self, frame: DataFrame, *, eager: bool = True) -> DataFrame:
        """The frame, checkpointed: the loss of a block fails the attempt."""
        return checkpoint_at_server(frame, eager)

    def release(self, frame: DataFrame) -> None:
        """The server removes the rows of a frame when nothing here refers to it any more."""

    def partitions_of(self, frame: DataFrame) -> int:
        """Return 0: a server does not say."""
        return 0


_parallelism: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()
"""For sessions of servers: how many tasks have reported."""


def access_to(session: SparkSession) -> Classic | Connect:
    """The form that a session has."""
    return Connect(session) if is_connect(session) else Classic(session)


def describe_session(session: SparkSession) -> str:
    """The version and form of a session, and what follows from them."""
    text = f"session: {name_of(session)}, {access_to(session).kind}"
    if not is_connect(session):
        return text
    return f"{text}: streaming DataFrames, and queries that Spark answers, are refused"


def checkpoint_frame(frame: DataFrame, *, eager: bool = True) -> DataFrame:
    """The frame, checkpointed: the loss of a block fails the attempt."""
    return access_to(frame.sparkSession).checkpoint_frame(frame, eager=eager)


def partitions_of(frame: DataFrame) -> int:
    """How many partitions the plan of a frame has, which a join leaves to Spark; 0 if unknown."""
    return access_to(frame.sparkSession).partitions_of(frame)


def _worker_reporter(
    modules: Names, packages: Names
) -> Callable[[Iterable[Any]], Iterator[dict[str, Any]]]:
    """Return a task that reports where it runs, and what it can't import and why.

    It also reports the version of this package there, and which packages are not installed. It is
    a closure that uses nothing of this module, so that it is pickled by value: a worker without
    this package could not import it.
    """

    def ask(_: Iterable[Any]) -> Iterator[dict[str, Any]]:
        import platform
        import sys
        from importlib import import_module
        from importlib.metadata import PackageNotFoundError, version

        problems, lacking = {}, []
        for name in modules:
            try:
                import_module(name)
            except Exception as error:
                problems[name] = f"{type(error).__name__}: {error}"
        for name in packages:
            try:
                version(name)
            except PackageNotFoundError:
                lacking.append(name)
        yield {
            "place": f"{platform.node()}, {sys.executable}",
            "python": platform.python_version(),
            "trident": getattr(sys.modules.get("trident"), "__version__", None),
            "problems": problems,
            "lacking": lacking,
        }

    return ask


def _arrow_worker_reporter(
    modules: Names, packages: Names
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The same as rows of Arrow, one for each task."""
    ask = _worker_reporter(modules, packages)

    def ask_in_arrow(batches: Iterable[Any]) -> Iterator[Any]:
        import json

        import pyarrow

        yield pyarrow.RecordBatch.from_pydict({"report": [json.dumps(next(ask(batches)))]})

    return ask_in_arrow


def _plan_partitions(plan: Any) -> int:
    # Of an RDD that it reads, as in a micro-batch, and of what keeps its partitions, Spark's plan
    # says 0. Asking its result would run broadcasts, and once more with the job.
    known = plan.outputPartitioning().numPartitions()
    if known:
        return int(known)
    kind = plan.getClass().getSimpleName()
    if kind == "RDDScanExec":
        return int(plan.rdd().getNumPartitions())
    if kind in ("BroadcastHashJoinExec", "BroadcastNestedLoopJoinExec"):
        if plan.joinType().sql() == "FULL OUTER":
            return 0  # one more, with what matches nothing
        left, right = plan.left(), plan.right()
        return _plan_partitions(right if plan.buildSide().toString() == "BuildLeft" else left)
    children = plan.children()
    counts = [_plan_partitions(children.apply(place)) for place in range(children.size())]
    return sum(counts) if all(counts) and (kind == "UnionExec" or len(counts) == 1) else 0
