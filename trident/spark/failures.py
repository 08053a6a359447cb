"""How an error crosses from an executor, through the JVM, to the driver and its user.

Spark quotes values of the stream in what it says. So nothing in a message is unpickled or
believed but what a stage of the same attempt has sealed.
"""

from __future__ import annotations

from pyspark.errors import PySparkException, PythonException

from trident.spark.attempt import Seal
from trident.spark.error_form import error_of, form_of, text_of
from trident.spark.errors import SparkFailure
from trident.states.errors import FailedException

_PASSING = frozenset({"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"})
"""Conditions of Spark's that say nothing of the batch: another attempt may well succeed."""


class StageFailure(Exception):
    """Ends a stage that feeds another; its message's last line is what the driver reads."""


def raised_in_stage(error: BaseException, seal: Seal) -> StageFailure:
    """What a stage raises so that the driver finds `error` in Spark's message."""
    return StageFailure(f"{text_of(error).splitlines()[0]}\n{marked(error, seal)}")


def marked(error: BaseException, seal: Seal) -> str:
    """One word that `of_spark` restores `error` from, wherever Spark puts it."""
    return seal.sealed(form_of(error))


def of_spark(error: Exception, seal: Seal | None = None) -> BaseException:
    """What a user should see for an error of Spark's: their own error where there is one.

    Parameters
    ----------
    error : Exception
        As Spark raised it on the driver.
    seal : Seal, optional
        That of the attempt; without it, no stage of ours can have raised.

    Returns
    -------
    BaseException
        The error from the stage, as `form_of` shows it; `FailedException` where another attempt
        may succeed; else `SparkFailure`, or the error itself when it isn't Spark's.
    """
    text = str(error)
    form = seal.opened(text) if seal else None
    if form is not None:
        return error_of(form)
    if not isinstance(error, PySparkException) and not hasattr(error, "java_exception"):
        return error
    if isinstance(error, PythonException):
        return SparkFailure("PYTHON_EXCEPTION", _python_part(text))
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    # By the condition, never by the text, which may quote a value.
    if condition is None or condition in _PASSING:
        return FailedException(f"Spark lost the batch: {text.strip().splitlines()[0]}")
    return SparkFailure(condition, text)


def _python_part(text: str) -> str:
    _, _, found = text.partition("Traceback (most recent call last):")
    return "\n".join((found or text).strip().splitlines()[-6:])
