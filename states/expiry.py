"""Values that are there until a moment, and absent from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trident.states.errors import UsageError
from trident.states.values import Versioned


@dataclass(frozen=True, slots=True)
class KeepUntil:
    """What an updater returns, or `multiPut` stores, in place of a value that is to expire.

    From that moment on the key is absent, for batches and for queries. They are handed the value
    itself, never this. The moment is stored with the value: where an attempt fails, the value
    before it is there again, until its own moment.

    Where a step of the batch group has ``expire_after=``, batches and queries judge by the time
    that the group's batches have reached, and a sweep removes what has expired. Elsewhere a batch
    judges by the moment at which its attempt began, a query by that at which it was asked; the
    clocks are those of the processes, and the entry stays until a batch writes the key.

    Parameters
    ----------
    value : object
        The value.
    until : datetime
        When it expires; has a time zone.

    Raises
    ------
    UsageError
        For a moment without a time zone.

    Examples
    --------
    >>> from datetime import timedelta
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import OpaqueMap
    >>> sessions = OpaqueMap(MemoryMap("sessions"))
    >>> sessions.beginCommit(1)
    >>> later, past = datetime.now(UTC) + timedelta(hours=1), datetime(2020, 1, 1, tzinfo=UTC)
    >>> sessions.multiPut([("a",), ("b",)], [KeepUntil(5, later), KeepUntil(7, past)])
    >>> sessions.commit(1)
    >>> sessions.multiGet([("a",), ("b",)])
    [5, None]
    """

    value: Any
    until: datetime

    def __post_init__(self) -> None:
        if not isinstance(self.until, datetime) or self.until.utcoffset() is None:
            what = "KeepUntil: until= takes a datetime with a time zone, found"
            advice = "Write datetime.now(UTC) + timedelta(days=1)."
            raise UsageError(what, repr(self.until), (), advice)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = (each.replace(tzinfo=UTC) for each in (datetime.min, datetime.max))


def now() -> datetime:
    """Return the moment by which values are judged where no batches tell it."""
    return datetime.now(UTC)


def moment_at(milliseconds: int) -> datetime:
    """Return a moment, in milliseconds since 1970; the first or last that there is for others.

    Examples
    --------
    >>> print(moment_at(1500), moment_at(10**18))
    1970-01-01 00:00:01.500000+00:00 9999-12-31 23:59:59.999999+00:00
    """
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return _FIRST if milliseconds < 0 else _LAST


def later(one: int | None, other: int | None) -> int | None:
    """Return the later of two times, either of which may be unknown."""
    return one if other is None or (one is not None and one > other) else other


def alive(values: Sequence[Any], moment: datetime) -> Sequence[Any]:
    """Return the values that there are at a moment: None for each that has expired.

    What is kept with a version is handed on without it, as whoever asks doesn't know the form.

    Examples
    --------
    >>> noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    >>> alive([1, KeepUntil(2, noon)], noon), alive([KeepUntil(2, noon)], datetime.min.replace(
    ...     tzinfo=UTC))
    ([1, None], [2])
    """
    if set(map(type, values)).isdisjoint((KeepUntil, Versioned)):
        return values
    return [alive_at(value, moment) for value in values]


def alive_at(kept: Any, moment: datetime) -> Any:
    """Return one value as :func:`alive` does."""
    value = kept.value if type(kept) is Versioned else kept
    if type(value) is not KeepUntil:
        return value
    return value.value if moment < value.until else None
