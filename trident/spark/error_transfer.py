"""How an error crosses from an executor, through the JVM, to the driver and its user.

Spark quotes values of the stream in what it says. So nothing in a message is unpickled or
believed but what a stage of the same attempt has sealed, or one of a DataFrame that this process
has made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException, PythonException

from trident.spark.error_json import error_from_json, error_to_json, text_of
from trident.spark.errors import EngineLostError, SparkFailure
from trident.spark.seal import Seal
from trident.spark.versions import condition_of, is_away
from trident.spark.worker_heap import freeze_imports
from trident.states.errors import FailedException, TridentError

_PASSING = frozenset({"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"})
"""Error conditions of Spark's that are not the batch's fault: another attempt may succeed."""

_PASSING_CLASSES = (
    "org.apache.spark.SparkException",  # a job that was aborted: its tasks or executors were lost
    "java.io.IOException",
    "java.util.concurrent.TimeoutException",
    "java.lang.InterruptedException",
)
"""The same for exceptions of the JVM that have no condition."""

_DATA_LOSS = "org.apache.spark.sql.kafka010.KafkaIllegalStateException"
"""What Spark's source of Kafka throws for lost records; no later attempt finds them."""

SOURCES = Seal()
"""Seals the errors of stages that belong to a DataFrame of ours, made before any attempt. It is
pickled with them, as each process has another one."""

_SHOWN = 1_000
"""How many letters of an error's own text are shown."""


class StageFailure(Exception):
    """Ends a stage; the driver restores the error from the last line of its message."""


@contextmanager
def stage_errors(seal: Seal) -> Iterator[None]:
    """Run a stage in a worker; raise its error so that the driver finds it in Spark's message."""
    freeze_imports()
    try:
        yield
    except Exception as error:
        raise stage_failure(error, seal) from None


def stage_failure(error: BaseException, seal: Seal) -> StageFailure:
    """Return what a stage raises for an error."""
    # Spark's worker can't write a lone surrogate, and then the JVM would wait for ever.
    shown = text_of(error).splitlines()[0].encode("utf-8", "backslashreplace").decode()
    return StageFailure(f"{shown[:_SHOWN]}\n{seal_error(error, seal)}")


def seal_error(error: BaseException, seal: Seal) -> str:
    """A sealed word from which `error_to_show` restores `error`, wherever Spark quotes it."""
    return seal.sign(error_to_json(error))


def error_to_show(
    error: BaseException, seal: Seal | None = None, work: str = "batch"
) -> BaseException:
    """What a user should see for an error of Spark's: their own error where there is one.

    That is the error from the stage, as `error_to_json` shows it; `EngineLostError` where Spark has
    ended; `FailedException` where another attempt may succeed; else `SparkFailure`, or the error
    itself when it isn't Spark's. Without the attempt's seal no stage of one can have raised.
    """
    if isinstance(error, TridentError):
        return error
    text = str(error)
    # An AnalysisException quotes the plan, and with it the errors that `natives` put there.
    seals = () if isinstance(error, AnalysisException) else (seal, SOURCES)
    for each in seals:
        if each is not None and (form := each.read(text)) is not None:
            return error_from_json(form)
    if found := _find_loss(error):
        return EngineLostError(found)
    if not isinstance(error, PySparkException) and not hasattr(error, "java_exception"):
        return error
    if isinstance(error, PythonException):
        return SparkFailure("PYTHON_EXCEPTION", _python_part(text), work)
    condition = condition_of(error) if isinstance(error, PySparkException) else None
    # By the condition, never by the text, which may quote a value.
    thrown = getattr(error, "java_exception", None)
    lost = _find_thrown(_DATA_LOSS, thrown or getattr(error, "_origin", None))
    if lost is not None:
        return SparkFailure("KAFKA_DATA_LOSS", str(lost.getMessage()), work)
    if condition is None:
        condition = _lasting_class(thrown)
    if condition is None or condition in _PASSING:
        return FailedException(f"Spark lost the {work}: {_first_cause(text)}")
    return SparkFailure(condition, text.partition("\n\nJVM stacktrace:")[0], work)


def _find_loss(error: BaseException) -> str:
    """What of Spark has ended; empty where it goes on, or this program has stopped it.

    Errors of py4j, of sockets and of Arrow only hint at it, so Spark is asked.
    """
    if is_away(error):
        return "its Connect server does not answer, or does not know the session any more"
    context: Any = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return ""
    try:
        return "its context was stopped" if context._jsc.sc().isStopped() else ""
    except Exception:
        return "its JVM has ended"


def _find_thrown(name: str, thrown: Any) -> Any:
    """Return the cause of the named class; None if there is no such cause."""
    while thrown is not None and thrown.getClass().getName() != name:
        thrown = thrown.getCause()
    return thrown


def _lasting_class(thrown: Any) -> str | None:
    """The class of what the JVM threw; None where another attempt may succeed."""
    lasting = None
    while thrown is not None:
        known = thrown.getClass()
        lasting = lasting or str(known.getName())
        while known is not None:
            if known.getName() in _PASSING_CLASSES:
                return None
            known = known.getSuperclass()
        thrown = thrown.getCause()
    return lasting


def _first_cause(text: str) -> str:
    """The line of an error's text that says most: of one of the JVM what caused all the rest."""
    lines = text.strip().splitlines()
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ") if causes else lines[0]


def _python_part(text: str) -> str:
    _, _, found = text.partition("Traceback (most recent call last):")
    return "\n".join((found or text).strip().splitlines()[-6:])
