"""The times of tuples, as windows reckon with them: whole milliseconds since 1970."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trident.errors import FieldError, ValueTypeError, described

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_WHOLE = ("long", "int", None)
TIMESTAMPS = ("timestamp", "timestamp_ntz")


def check_time(call: str, field: str, kind: str | None) -> None:
    """A field with times is of milliseconds or of timestamps."""
    if kind not in (*_WHOLE, *TIMESTAMPS):
        what = f"{call}: a time is a long, in milliseconds, or a timestamp; {kind} is the field"
        raise FieldError(what, field, (), "Convert it first, in each() or map().")


def milliseconds(kind: str | None, times: Sequence[Any]) -> Sequence[int]:
    """Times in milliseconds; those of timestamps without a zone are taken for UTC.

    A value that is no time, such as null, is refused.

    Examples
    --------
    >>> milliseconds("timestamp", [datetime(1970, 1, 1, 0, 1)])
    [60000]
    """
    if set(map(type, times)) <= {int}:
        return times
    return [_milliseconds(kind, time) for time in times]


def _milliseconds(kind: str | None, time: object) -> int:
    if type(time) is int:
        return time
    if kind in TIMESTAMPS and isinstance(time, datetime):
        aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
        return (aware - _EPOCH) // _MILLISECOND
    due = "timestamps" if kind in TIMESTAMPS else "times: whole milliseconds, or timestamps"
    raise ValueTypeError("window", f"{due} where the field is declared so", described(time))


def time_of(kind: str | None, milliseconds: int) -> Any:
    """A time as a field of the type has it.

    Examples
    --------
    >>> time_of("long", 60000), time_of("timestamp_ntz", 60000)
    (60000, datetime.datetime(1970, 1, 1, 0, 1))
    """
    if kind not in TIMESTAMPS:
        return milliseconds
    made = _EPOCH + milliseconds * _MILLISECOND
    return made if kind == "timestamp" else made.replace(tzinfo=None)
