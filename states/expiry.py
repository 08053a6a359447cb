"""Values that are there until a moment, and absent from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trident.states.errors import UsageError


@dataclass(frozen=True, slots=True)
class KeepUntil:
    """What an updater returns, or `multiPut` stores, in place of a value that is to expire.

    From that moment on the key is absent, for batches and for queries. They are handed the value
    itself, never this. The moment is stored with the value: where an attempt fails, the value
    before it is there again, until its own moment. A batch judges a key by the moment at which its
    attempt began, a query by that at which it was asked; the clocks are those of the processes.

    The entry stays in the store, until a later batch writes the key or calls ``removeExpired()``.

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


def now() -> datetime:
    """Return the moment by which values are judged."""
    return datetime.now(UTC)


def alive(values: Sequence[Any], moment: datetime) -> Sequence[Any]:
    """Return the values that there are at a moment: None for each that has expired.

    Examples
    --------
    >>> noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    >>> alive([1, KeepUntil(2, noon)], noon), alive([KeepUntil(2, noon)], datetime.min.replace(
    ...     tzinfo=UTC))
    ([1, None], [2])
    """
    if KeepUntil not in set(map(type, values)):
        return values
    return [_alive(value, moment) if type(value) is KeepUntil else value for value in values]


def _alive(kept: KeepUntil, moment: datetime) -> Any:
    return kept.value if moment < kept.until else None
