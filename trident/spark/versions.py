"""What differs between the versions of Spark: a function for each purpose, and nowhere else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from logging import Logger
from threading import Thread
from typing import Any, cast

import pyarrow as pa
import pyspark
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.pandas.types import to_arrow_schema

_VERSION = tuple(int(number) for number in re.findall(r"\d+", pyspark.__version__)[:2])
_ALL = 2**32 - 1
_STREAMING = "org.apache.spark.sql.execution.streaming"
_PINGS = {"grpc.keepalive_time_ms": 60_000, "grpc.keepalive_timeout_ms": 20_000}
_RELEASING = 10.0
"""Seconds for a server to end a session."""

OLDEST_JAVA = 17 if _VERSION >= (4, 0) else 8


def require_spark() -> None:
    """Raise an ImportError where PySpark is too old."""
    if _VERSION < (3, 5):
        raise ImportError(
            f"topologies on Spark need PySpark 3.5 or newer, and this is {pyspark.__version__}: "
            'pip install --upgrade "trident-spark[spark]"'
        )


def name_of(session: SparkSession) -> str:
    """Spark with the version that runs a session, which may be of a server."""
    return f"Spark {session.version}"


def file_manager() -> str:
    """The simpler of the classes that write Spark's checkpoints."""
    package = f"{_STREAMING}.checkpointing" if _VERSION >= (4, 1) else _STREAMING
    return f"{package}.FileSystemBasedCheckpointFileManager"


def logger_of_batches() -> str:
    """Return the name of the JVM's logger of micro-batches."""
    package = f"{_STREAMING}.runtime" if _VERSION >= (4, 1) else _STREAMING
    return f"{package}.MicroBatchExecution"


def loggers_of_errors() -> list[Logger]:
    """Return the loggers to which PySpark logs errors of the JVM."""
    if _VERSION < (4, 0):
        return []
    from pyspark.logger import PySparkLogger

    names = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
    return [PySparkLogger.getLogger(name) for name in names]


def is_connect(given: Any) -> bool:
    """Whether a session or a DataFrame is of Spark Connect."""
    return type(given).__module__.startswith("pyspark.sql.connect")


def session_at_server(url: str) -> SparkSession:
    """A session of the server of Spark Connect at `url`, which is asked nothing yet.

    The builder of PySpark 3.5 and 4.0 sends its settings at once, and waits ten minutes for a
    server that is away. On 3.5 the URL is one of them.
    """
    if _VERSION >= (4, 0):
        return SparkSession.builder.remote(url).getOrCreate()
    from pyspark.sql.connect import client, session

    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # as that builder does
    connection = cast(Any, client).ChannelBuilder(url)
    made: Any = session.SparkSession.builder.channelBuilder(connection).create()
    return cast(SparkSession, made)


def session_of_server(session: Any) -> SparkSession:
    """A session of the same server, with the same settings.

    Before 4.1 it has none of the artifacts and temporary views. A server that hangs is found by
    pings, as PySpark has them since 4.3.
    """
    made: SparkSession
    connection = session.client._builder
    if not hasattr(connection, "keepalive_enabled"):
        connection._channel_options = [*(dict(connection._channel_options) | _PINGS).items()]
    if hasattr(session, "cloneSession"):
        made = session.cloneSession()
    else:
        made = type(session).Builder().channelBuilder(connection).create()
        copy_settings(session, made)
    _bound_retries(made, 6)
    return made


def end_session(session: Any) -> None:
    """End what `session_of_server` has made; ``stop`` would end a server of this process too."""
    _bound_retries(session, 0)

    def release() -> None:
        with suppress(Exception):  # such as of a server that has ended
            session.client.release_session()

    releasing = Thread(target=release, daemon=True)
    releasing.start()
    releasing.join(_RELEASING)  # a server that hangs would take minutes
    session.client.close()


def require_answer(session: Any) -> None:
    """Raise the error of a server that is away after 15 seconds, and leave the session so."""
    name = "_retry_policy" if _VERSION < (4, 0) else "_retry_policies"
    before = getattr(session.client, name).copy()
    _bound_retries(session, 6)
    try:
        session.conf.get("spark.app.name", None)
    except Exception:
        _bound_retries(session, 0)
        raise
    setattr(session.client, name, before)


def _bound_retries(session: Any, most: int) -> None:
    """Let calls to a server that is away end after six times, and 15 seconds, not ten minutes."""
    bounds: Any = {"max_retries": most, "max_backoff": 5000}
    if _VERSION < (4, 0):
        session.client._retry_policy.update(bounds)
        return
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(**bounds)])


def is_away(error: Any) -> bool:
    """Whether Spark Connect's server did not answer, or does not know the session any more."""
    if not isinstance(error, PySparkException):
        return False
    if (condition_of(error) or "").startswith(("INVALID_HANDLE.SESSION", "RETRIES_EXCEEDED")):
        return True
    # An error that a server reports has a class of its own, and may quote values.
    return type(error).__name__ == "SparkConnectGrpcException" and "UNAVAILABLE" in str(error)


def checkpoint_at_server(frame: Any, eager: bool) -> DataFrame:
    """``localCheckpoint`` on Spark Connect; before 4.0 the rows are kept in this process."""
    session = frame.sparkSession
    if _VERSION < (4, 0):
        return create_data_frame(session, collect_table(frame), frame.schema)
    found: Any = frame.localCheckpoint(eager=eager)
    if found.sparkSession is session:
        return cast(DataFrame, found)  # with which its rows go
    # Which is of the thread's active session.
    ours: DataFrame = session._create_remote_dataframe(found._plan._relation_id)
    return ours


def copy_settings(source: SparkSession, target: SparkSession) -> None:
    """Give a session all settings of another one that it may have."""
    known = settings_of(target)
    for name, value in settings_of(source).items():
        if known.get(name) != value and target.conf.isModifiable(name):
            target.conf.set(name, value)


def settings_of(session: SparkSession) -> Mapping[str, str]:
    if hasattr(session.conf, "getAll"):
        return session.conf.getAll
    if is_connect(session):
        return {row.key: row.value for row in session.sql("SET").collect()}
    # SQL's SET would hide secrets, which are to be copied.
    converters = _jvm().scala.collection.JavaConverters
    found = session._jsparkSession.conf().getAll()
    return dict(converters.mapAsJavaMapConverter(found).asJava())


def condition_of(error: Any) -> str | None:
    """The name that Spark gives an error of its own."""
    name: str | None = (getattr(error, "getCondition", None) or error.getErrorClass)()
    return name or None  # Spark Connect has an empty one instead of none


def forbids_mode(error: Any) -> bool:
    """Whether Spark says that a query can't have its output mode."""
    if _VERSION >= (4, 0):
        return (condition_of(error) or "").startswith("STREAMING_OUTPUT_MODE")
    return " output mode not supported " in str(error)


def cancel_jobs(context: SparkContext, group: str) -> None:
    """Cancel the jobs of a group; since 4.0 also those that begin later."""
    jobs: Any = context._jsc.sc()
    if _VERSION >= (4, 0):
        jobs.cancelJobGroupAndFutureJobs(group)
    else:
        jobs.cancelJobGroup(group)


def progress_of(query: Any) -> Any:
    """Return Spark's report of a query's last batch: before 4.1 PySpark parses no offsets."""
    progress = query._jsq.lastProgress()
    return None if progress is None else json.loads(progress.json())


def plan_in_session(session: SparkSession, frame: DataFrame) -> DataFrame:
    """The frame in another session, which plans it by its own settings."""
    # A published way would be a view, but when that is dropped what it shows is uncached.
    sql = _jvm().org.apache.spark.sql
    frames = sql.classic.Dataset if _VERSION >= (4, 0) else sql.Dataset
    plan = frame._jdf.queryExecution().analyzed()
    return DataFrame(frames.ofRows(session._jsparkSession, plan), session)


def place_rows(frame: DataFrame, count: int, column: str) -> DataFrame:
    """Move each row to the partition that its column names, of `count` partitions."""
    if hasattr(DataFrame, "repartitionById"):
        return frame.repartitionById(count, column)
    key = F.element_at(F.lit(_keys(count)), F.col(column) + 1)
    return frame.repartition(count, key)


@cache
def _keys(count: int) -> list[int]:
    """For each partition a number whose hash is there."""
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < count:
        keys.setdefault(_hash(key) % count, key)
        key += 1
    return [keys[partition] for partition in range(count)]


def _hash(number: int) -> int:
    """Spark's hash of an int from 0: that of Murmur3, 32 bits, with the seed 42."""
    mixed = _rotate(number * 0xCC9E2D51, 15) * 0x1B873593 & _ALL
    mixed = (_rotate(mixed ^ 42, 13) * 5 + 0xE6546B64 & _ALL) ^ 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _ALL
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _ALL
    mixed ^= mixed >> 16
    return mixed - 2**32 if mixed >= 2**31 else mixed


def _rotate(number: int, bits: int) -> int:
    number &= _ALL
    return (number << bits | number >> 32 - bits) & _ALL


def collect_table(frame: DataFrame) -> pa.Table:
    """The rows of a frame."""
    if hasattr(DataFrame, "toArrow"):
        return frame.toArrow()
    older, schema = cast(Any, frame), to_arrow_schema(frame.schema)
    if is_connect(frame):
        client = older._session.client
        return client.to_table(older._plan.to_proto(client))[0].cast(schema)
    batches = older._collect_as_arrow()
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def create_data_frame(session: SparkSession, data: Any, schema: Any) -> DataFrame:
    """``createDataFrame``, which takes an Arrow table since 4.0."""
    if _VERSION >= (4, 0) or not isinstance(data, pa.Table):
        return session.createDataFrame(data, schema)
    if is_connect(session):
        from pyspark.sql.connect import dataframe, plan

        remote: Any = dataframe.DataFrame
        whole = data.combine_chunks()  # of several record batches a server of 3.5 takes the first
        made: DataFrame = remote.withPlan(plan.LocalRelation(whole, schema.json()), session)
        return made
    sql, context = _jvm().PythonSQLUtils, session.sparkContext
    rows = context._serialize_to_jvm(
        data.to_batches(session._jconf.arrowMaxRecordsPerBatch()),
        ArrowStreamSerializer(),
        sql.readArrowStreamFromFile,
        _jvm().ArrowIteratorServer,
    )
    return DataFrame(sql.toDataFrame(rows, schema.json(), session._jsparkSession), session)


def is_utf8() -> str:
    """The expression of whether bytes, called ``{0}``, are text."""
    if _VERSION >= (4, 0):
        return "is_valid_utf8(cast({0} AS string))"
    return "encode(decode({0}, 'UTF-8'), 'UTF-8') = {0}"  # invalid bytes are replaced


def kafka_package(session: SparkSession) -> str:
    """The coordinates of Spark's source of Kafka."""
    scala = _jvm().scala.util.Properties.versionNumberString().rpartition(".")[0]
    return f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{session.version}"


def _jvm() -> Any:
    return SparkContext._jvm
