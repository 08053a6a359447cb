"""What each error is over HTTP and Thrift: one table, by which servers write and clients read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from enum import IntEnum
from typing import Any, NamedTuple

import orjson

from trident.drpc.errors import (
    ArgumentsTooLargeError,
    DRPCAccessError,
    DRPCClosedError,
    DRPCElsewhereError,
    DRPCError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCQueueFullError,
    DRPCTimeoutError,
    DRPCUnavailableError,
    MalformedRequestError,
    StateNotThereError,
    UnknownFunctionError,
)
from trident.state_service.errors import (
    AnswerTooLargeError,
    NoJSONError,
    NoSuchKeyError,
    StateLeftOutError,
    TooManyKeysError,
    UnknownStateError,
)


class ExceptionType(IntEnum):
    """Storm's ``DRPCExceptionType``."""

    INTERNAL_ERROR = 0
    SERVER_SHUTDOWN = 1
    SERVER_TIMEOUT = 2
    FAILED_REQUEST = 3


_INTERNAL, _SHUTDOWN, _TIMEOUT, _FAILED = ExceptionType


class _Row(NamedTuple):
    kind: type[DRPCError]
    status: int
    type: ExceptionType
    error: str
    message: str = "{0}"
    """The template of the message that clients get."""


_TABLE = (
    _Row(
        *(DRPCInternalError, 500, _INTERNAL, "INTERNAL_ERROR"),
        "{0.function!r} could not be answered; the server's log says why",
    ),
    _Row(DRPCInternalError, 403, _INTERNAL, "OTHER_SITE"),
    _Row(DRPCInternalError, 404, _INTERNAL, "NOT_FOUND"),
    _Row(DRPCExecutionError, 400, _FAILED, "FAILED_REQUEST", "{0.summary}"),
    _Row(
        *(DRPCUnavailableError, 503, _INTERNAL, "STORE_UNAVAILABLE"),
        "{0.function!r} can't be answered now: a store that it reads is away",
    ),
    _Row(
        *(StateNotThereError, 503, _INTERNAL, "STATE_NOT_THERE"),
        "{0.function!r} can't be answered: a state that it reads is not there, or has not begun. "
        "Start its topology; the server's log says where was looked.",
    ),
    _Row(DRPCTimeoutError, 504, _TIMEOUT, "SERVER_TIMEOUT"),
    _Row(DRPCClosedError, 503, _SHUTDOWN, "SERVER_SHUTDOWN"),
    _Row(DRPCQueueFullError, 503, _INTERNAL, "QUEUE_FULL"),
    _Row(DRPCElsewhereError, 421, _FAILED, "ELSEWHERE"),
    _Row(DRPCAccessError, 401, _FAILED, "Not Authorized"),  # 403 where the user is known
    _Row(MalformedRequestError, 400, _FAILED, "MALFORMED_REQUEST"),
    _Row(ArgumentsTooLargeError, 413, _FAILED, "ARGUMENTS_TOO_LARGE"),
    _Row(UnknownFunctionError, 404, _FAILED, "UNKNOWN_FUNCTION"),
    _Row(UnknownStateError, 404, _FAILED, "UNKNOWN_STATE"),
    _Row(StateLeftOutError, 400, _FAILED, "STATE_LEFT_OUT"),
    _Row(NoSuchKeyError, 404, _FAILED, "NO_SUCH_KEY"),
    _Row(NoJSONError, 406, _FAILED, "NO_JSON"),
    _Row(TooManyKeysError, 413, _FAILED, "TOO_MANY_KEYS"),
    _Row(AnswerTooLargeError, 413, _FAILED, "ANSWER_TOO_LARGE"),
)
"""An error is written as the first row of its class, and read by its name. An unknown name is read
as the first row of its status or type."""
_FIRST = _TABLE[::-1]
_BY_KIND: Mapping[type[Exception], _Row] = {row.kind: row for row in _FIRST}
_BY_NAME = {row.error: row for row in _FIRST}
_BY_STATUS = {row.status: row for row in _FIRST}
_BY_TYPE = {int(row.type): row for row in _FIRST}
_NAMES = {"waiting": "queueLength", "known": "functions"}
"""The names in JSON of fields that have another one here."""


class PublicError(NamedTuple):
    """The part of an error that clients get.

    `status` is HTTP's, `type` Thrift's, `error` its name in JSON. The message never has a frame,
    nor what is for the server's log only. `details` are the error's fields, for programs.
    """

    status: int
    type: ExceptionType
    error: str
    message: str
    details: dict[str, Any]


def public_error(error: Exception) -> PublicError:
    """Return the part of an error that clients get."""
    row = next((_BY_KIND[kind] for kind in type(error).__mro__ if kind in _BY_KIND), None)
    if row is None:
        message = "the request could not be answered; the server's log says why"
        return PublicError(500, _INTERNAL, _INTERNAL.name, message, {})
    if isinstance(error, DRPCExecutionError):
        details: dict[str, Any] = {"function": error.function}
    else:
        names = [field.name for field in fields(error)]  # type: ignore[arg-type]
        details = {_NAMES.get(name, name): _to_json(name, getattr(error, name)) for name in names}
    status = 403 if details.get("user") is not None else row.status
    return PublicError(status, row.type, row.error, row.message.format(error), details)


def error_json(name: str, message: str, **details: object) -> bytes:
    """Return Storm's JSON of an error: its name, its message, and more for programs."""
    shown = message.encode(errors="replace").decode()  # a user's text may hold lone surrogates
    return orjson.dumps({"error": name, "errorMessage": shown, **details})


def read_error(function: str, args: str, status: int, body: bytes) -> DRPCError:
    """Return the error that a response stands for, of this library's servers or others."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    values = found if isinstance(found, dict) else {}
    row = _BY_NAME.get(str(values.get("error"))) or _BY_STATUS.get(status, _TABLE[0])
    message = str(values.get("errorMessage", f"status {status}"))
    return _make_error(row, function, args, message, values)


def read_exception(function: str, args: str, type: object, message: str) -> DRPCError:
    """Return the error that an exception of a server of Storm's stands for, by its type."""
    row = _BY_TYPE.get(type, _TABLE[0]) if isinstance(type, int) else _TABLE[0]
    return _make_error(row, function, args, message, {})


def _make_error(
    row: _Row, function: str, args: str, message: str, values: Mapping[str, Any]
) -> DRPCError:
    kind: Any = row.kind
    if issubclass(kind, DRPCExecutionError):
        error: DRPCError = kind(function, args, message)
    else:
        given = {
            field.name: _from_json(str(field.type), values.get(_NAMES.get(field.name, field.name)))
            for field in fields(kind)
        }
        error = kind(**given | ({"function": function} if "function" in given else {}))
    return error


def _to_json(name: str, value: Any) -> Any:
    if name == "key" and value is not None:
        return orjson.Fragment(value)
    if isinstance(value, str):
        return value.encode(errors="replace").decode()  # as error_json
    if isinstance(value, tuple | list):
        return [_to_json("", each) for each in value]
    return round(value, 3) if isinstance(value, float) else value


def _from_json(kind: str, value: Any) -> Any:
    """Return a field's value of the type `kind`; an empty one for a value of another type."""
    if value is None and kind.endswith("None"):
        return None
    if kind.startswith(("int", "float")):
        is_number = isinstance(value, int | float) and abs(value) < 2**53
        return (float if kind == "float" else int)(value) if is_number else 0
    if kind.startswith("Sequence"):
        return [str(each) for each in value] if isinstance(value, list) else []
    return json.dumps(value) if isinstance(value, list) else str("" if value is None else value)
