"""Values that expire: from a moment on they are absent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trident.states.errors import UsageError
from trident.states.values import Versioned


@dataclass(frozen=True, slots=True)
class KeepUntil:
    """A value with the moment at which it expires; updaters return it, or `multiPut` stores it.

    From that moment on the key is absent, for batches and for queries. They get the value itself,
    never this. The moment is stored with the value: if an attempt fails, the previous value is
    back, until its own moment.

    If a step of the batch group has ``expire_after=``, the time that the group's batches have
    reached decides, and a sweep removes expired entries. Otherwise it is the moment at which the
    batch's attempt began, or at which the query was asked, by the clock of that process; the entry
    stays until a batch writes the key.

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
    """Return the moment that decides what has expired, if batches don't decide it."""
    return datetime.now(UTC)


def moment_at(milliseconds: int) -> datetime:
    """Return a moment, given in milliseconds since 1970; the first or last datetime beyond these.

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
    """Return the later of two times; either may be None, which is unknown."""
    return one if other is None or (one is not None and one > other) else other


def alive(values: Sequence[Any], moment: datetime) -> Sequence[Any]:
    """Return values as of a moment: without their moments and versions, None for expired ones.

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
