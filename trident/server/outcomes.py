"""What an error is to those who ask from elsewhere: Storm's names, over HTTP and Thrift."""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import Any, NamedTuple

import orjson

from trident.drpc.errors import (
    ArgumentsTooLargeError,
    DRPCAccessError,
    DRPCClosedError,
    DRPCElsewhereError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCQueueFullError,
    DRPCTimeoutError,
    DRPCUnavailableError,
    MalformedRequestError,
    UnknownFunctionError,
)
from trident.server.failure_log import FAILURES
from trident.states.errors import NoStateError


class ExceptionType(IntEnum):
    """Storm's ``DRPCExceptionType``."""

    INTERNAL_ERROR = 0
    SERVER_SHUTDOWN = 1
    SERVER_TIMEOUT = 2
    FAILED_REQUEST = 3


class Outcome(NamedTuple):
    """A failure, as it is told.

    Parameters
    ----------
    status : int
        Of HTTP.
    type : ExceptionType
        Of Thrift.
    error : str
        Its name in the JSON of HTTP.
    message : str
        What happened; never a frame.
    details : dict
        More of it for programs, in the JSON of HTTP.
    """

    status: int
    type: ExceptionType
    error: str
    message: str
    details: dict[str, Any]


def outcome(error: Exception) -> Outcome:
    """What is told of an error; what isn't for others is logged.

    Examples
    --------
    >>> outcome(DRPCTimeoutError("words", 5.0, 2))[:3]
    (504, <ExceptionType.SERVER_TIMEOUT: 2>, 'SERVER_TIMEOUT')
    """
    internal, shutdown, timeout, failed = ExceptionType
    match error:
        case DRPCTimeoutError(function=function, elapsed=elapsed, waiting=waiting):
            details = {"function": function, "elapsed": round(elapsed, 3), "queueLength": waiting}
            return Outcome(504, timeout, timeout.name, str(error), details)
        case DRPCQueueFullError(function=function, waiting=waiting):
            details = {"function": function, "queueLength": waiting}
            return Outcome(503, internal, "QUEUE_FULL", str(error), details)
        case DRPCClosedError(function=function):
            return Outcome(503, shutdown, shutdown.name, str(error), {"function": function})
        case DRPCElsewhereError(function=function):
            return Outcome(421, failed, "ELSEWHERE", str(error), {"function": function})
        case UnknownFunctionError(function=function, known=known):
            details = {"function": function, "functions": list(known)}
            return Outcome(404, failed, "UNKNOWN_FUNCTION", str(error), details)
        case DRPCUnavailableError(function=function):
            FAILURES.log(logging.WARNING, function, _reason(error), error)
            if isinstance(error.__cause__, NoStateError):
                message = (
                    f"{function!r} can't be answered: a state that it reads is not there, or has "
                    "not begun. Start its topology; the server's log says where was looked."
                )
                return Outcome(503, internal, "STATE_NOT_THERE", message, {"function": function})
            message = f"{function!r} can't be answered now: a store that it reads is away"
            return Outcome(503, internal, "STORE_UNAVAILABLE", message, {"function": function})
        case DRPCInternalError(function=function):
            cause = error.__cause__
            FAILURES.log(logging.ERROR, function, _reason(error), error, cause=cause)
            message = f"{function!r} could not be answered; the server's log says why"
            return Outcome(500, internal, internal.name, message, {"function": function})
        case DRPCExecutionError(function=function, summary=summary):
            return Outcome(400, failed, failed.name, summary, {"function": function})
        case ArgumentsTooLargeError(function=function, limit=limit):
            details = {"function": function, "limit": limit}
            return Outcome(413, failed, "ARGUMENTS_TOO_LARGE", str(error), details)
        case MalformedRequestError():
            return Outcome(400, failed, "MALFORMED_REQUEST", str(error), {})
        case DRPCAccessError(function=function, user=user):
            status = 401 if user is None else 403
            return Outcome(status, failed, "Not Authorized", str(error), {"function": function})
    FAILURES.log(
        logging.ERROR, "", type(error).__name__, "a request could not be answered", cause=error
    )
    message = "the request could not be answered; the server's log says why"
    return Outcome(500, internal, internal.name, message, {})


def _reason(error: Exception) -> str:
    return type(error.__cause__ or error).__name__


def error_json(name: str, message: str, **details: object) -> bytes:
    """Storm's JSON: the name of an error, its message, and more for programs."""
    shown = message.encode(errors="replace").decode()  # a user's text may hold lone surrogates
    return orjson.dumps({"error": name, "errorMessage": shown, **details})
