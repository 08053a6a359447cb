"""How an error crosses from an executor, through the JVM, to the driver and its user."""

from __future__ import annotations

import base64
import pickle

from pyspark.errors import PySparkException, PythonException

from trident.failures import OperationError
from trident.spark.errors import SparkFailure
from trident.states.errors import FailedException, TridentError

_MARK = "trident-failure:"
# Spark's own errors that say nothing of the batch: another attempt may well succeed.
_PASSING = (
    "checkpoint block",
    "FetchFailed",
    "MetadataFetchFailed",
    "ExecutorLostFailure",
    "BlockNotFoundException",
)


class StageFailure(Exception):
    """Ends a stage that feeds another; its message's last line is what the driver reads."""


def shipped(error: BaseException) -> bytes:
    """An error as bytes that the driver restores with `restored`; never fails.

    A class of the user's that doesn't pickle is shown by name and text; an attempt that it fails
    stays failed.
    """
    if isinstance(error, OperationError):
        error.__cause__ = error.__context__ = None
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:
        text = f"{type(error).__name__}: {error}"
        data = pickle.dumps(
            FailedException(text) if isinstance(error, FailedException) else TridentError(text)
        )
    return data


def restored(data: bytes) -> BaseException:
    """The error that `shipped` packed."""
    error: BaseException = pickle.loads(data)
    return error


def raised_in_stage(error: BaseException) -> StageFailure:
    """What a stage raises so that the driver finds `error` in Spark's message."""
    summary = (str(error).splitlines() or [""])[0]
    return StageFailure(f"{type(error).__name__}: {summary}\n{marked(error)}")


def marked(error: BaseException) -> str:
    """One line that `of_spark` restores `error` from, wherever Spark puts it."""
    return _MARK + base64.b64encode(shipped(error)).decode()


def of_spark(error: Exception) -> BaseException:
    """What a user should see for an error of Spark's: their own error where there is one.

    Parameters
    ----------
    error : Exception
        As Spark raised it on the driver.

    Returns
    -------
    BaseException
        The error from the stage as it was raised there; `FailedException` where another attempt
        may succeed; else `SparkFailure`, or the error itself when it isn't Spark's.
    """
    text = str(error)
    _, mark, packed = text.rpartition(_MARK)
    if mark:
        return restored(base64.b64decode(packed.split()[0]))
    if not isinstance(error, PySparkException) and not hasattr(error, "java_exception"):
        return error
    if isinstance(error, PythonException):
        return SparkFailure("PYTHON_EXCEPTION", _python_part(text))
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition is None or any(sign in text for sign in _PASSING):
        return FailedException(f"Spark lost the batch: {text.strip().splitlines()[0]}")
    return SparkFailure(condition, text)


def _python_part(text: str) -> str:
    _, _, found = text.partition("Traceback (most recent call last):")
    return "\n".join((found or text).strip().splitlines()[-6:])
