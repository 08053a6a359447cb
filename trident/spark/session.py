"""Makes Spark sessions for one machine."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from trident.spark.access import access_to
from trident.spark.errors import SparkSessionError
from trident.spark.java import explain_start_failure
from trident.spark.scratch import clear_scratch, scratch
from trident.spark.starting import count_seconds
from trident.spark.versions import file_manager, loggers_of_errors, session_at_server
from trident.states.errors import UsageError
from trident.states.tracebacks import Briefly

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

LOG_FILE = "spark.trident.log"
"""The setting that holds the path of the JVM's own messages; only sessions of ours have it."""


def local_session(**conf: Any) -> SparkSession:
    """Start Spark in this process, set up for small batches and a quiet screen.

    On a terminal a line counts the seconds until it is there. The Python workers run this
    interpreter, the web page and the progress bars are off, the JVM logs errors only, and what it
    prints goes to a file, whose path is the setting ``spark.trident.log``. That file, and all else
    that Spark puts on disk by itself, is in a temporary folder that only this user can read: it is
    emptied when the session stops, so a later session of the same JVM has no log, and removed when
    the process ends; that of a process which was killed, by the next one. Files on a local disk are
    written without checksum files, and Spark's checkpoints by the simpler of its file managers,
    which takes a batch's fixed cost from about 100 ms to 15 to 35 ms.

    Parameters
    ----------
    **conf : object
        Spark settings by their full name, which win over the ones made here:
        ``local_session(**{"spark.master": "local[2]"})``.

    Returns
    -------
    pyspark.sql.SparkSession
        A new session, or the running one when an earlier call here made it and it already has
        these settings.

    Raises
    ------
    SparkSessionError
        A session runs that was not made here, or one with other settings: pass that one to
        ``start``, or stop it first. Or Java is missing, or too old.

    Notes
    -----
    Runs on the driver. A session that you make yourself is used as it is, with none of these
    settings.

    Examples
    --------
    >>> spark = local_session()
    >>> spark.conf.get("spark.ui.showConsoleProgress")
    'false'
    """
    wanted = {name: _text(value) for name, value in conf.items()}
    running = SparkSession.getActiveSession()
    if running is not None:
        return _reuse(running, wanted)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for logger in loggers_of_errors():
        logger.setLevel(logging.CRITICAL + 1)
    settings = SparkConf().setAll(list((_default_settings() | wanted).items()))
    with Briefly(), count_seconds():
        context = _Context(conf=settings, gateway=_gateway(settings))
    _without_checksum_files(context)
    return SparkSession(context)


_MASTERS = ("local", "spark:", "k8s:", "yarn", "mesos:", "sc:")


def session_at(master: str) -> SparkSession:
    """The session that a command runs on: a running one, or by `master` one here, there or by
    Connect."""
    if master and not master.startswith(_MASTERS):
        advice = "Write the topology before the option, or a master behind it."
        raise UsageError("no master of Spark begins as", master, _MASTERS, advice)
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted and (not master or master.startswith("local")):
        return local_session(**({"spark.master": master} if master else {}))
    if master.startswith("sc:"):
        with count_seconds():
            return session_at_server(master)
    builder = SparkSession.builder.appName("trident")
    try:
        with count_seconds():
            return (builder.master(master) if master else builder).getOrCreate()
    except PySparkRuntimeError as error:
        raise explain_start_failure(error) or error from None


class _Context(SparkContext):
    """A context that empties the scratch folder when it stops."""

    def stop(self) -> None:
        super().stop()
        clear_scratch()


def _default_settings() -> dict[str, str]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "spark.master": "local[*]",
        "spark.app.name": "trident",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch()),
        "spark.driver.defaultJavaOptions": _quote(f"-Djava.io.tmpdir={scratch()}"),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.pyspark.jvmStacktrace.enabled": "false",
        "spark.sql.streaming.checkpointFileManagerClass": file_manager(),
    }


def _without_checksum_files(context: SparkContext) -> None:
    """Let the JVM's local file system write no ``.crc`` files: half the cost of Spark's own log.

    The setting of the raw file system would do that too, but Spark's state stores don't take that:
    RocksDB needs a LocalFileSystem.
    """
    jvm: Any = context._jvm
    configuration = context._jsc.hadoopConfiguration()
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(configuration).setWriteChecksum(False)


def _gateway(settings: SparkConf) -> JavaGateway | None:
    log = scratch() / "spark.log"
    settings.set(LOG_FILE, str(log))
    if SparkContext._gateway is not None:  # a JVM outlives its session, but not its log
        return None
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        streams = {"stdout": handle, "stderr": handle}
        gateway: JavaGateway = launch_gateway(settings, streams)  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise explain_start_failure(error, log) or error from None
    finally:
        os.close(handle)
    return gateway


def _reuse(running: SparkSession, wanted: dict[str, str]) -> SparkSession:
    if running.conf.get(LOG_FILE, None) is None:
        raise SparkSessionError(
            "a Spark session runs that local_session() did not make",
            "Pass that one to start(), or stop() it first.",
        )
    for name, value in wanted.items():
        if (found := running.conf.get(name, None)) != value:
            raise SparkSessionError(
                f"a session runs with {name}={found}, asked for is {value}",
                "Use that one, or stop() it first.",
            )
    return running


def _quote(option: str) -> str:
    """A JVM option quoted, so that Spark doesn't split it at spaces."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_session(spark: SparkSession, whose: str, advice: str = "Make a new one.") -> None:
    """Refuse a session that was stopped; `whose` begins the error."""
    if access_to(spark).is_stopped:
        raise SparkSessionError(f"{whose} a session that was stopped", advice)
