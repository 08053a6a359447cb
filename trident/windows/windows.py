"""Windows: which tuples of a stream are aggregated together, and when.

A window ends at each multiple of its slide, and reaches back its length: by the number of tuples,
by the time of batches, or by a time that the tuples have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, Self

from trident.errors import OperationTypeError, PlanError, described


@dataclass(frozen=True, order=True)
class Duration:
    """A length of time, in whole milliseconds.

    Parameters
    ----------
    milliseconds : int
        How many.

    Examples
    --------
    >>> BaseWindow.Duration.minutes(2)
    Duration.of(120000)
    >>> Duration.of(1500) < Duration.seconds(2)
    True
    """

    milliseconds: int

    @staticmethod
    def of(milliseconds: int) -> Duration:
        """A number of milliseconds."""
        return Duration(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Duration:
        """A number of seconds."""
        return Duration(1000 * seconds)

    @staticmethod
    def minutes(minutes: int) -> Duration:
        """A number of minutes."""
        return Duration(60_000 * minutes)

    @staticmethod
    def hours(hours: int) -> Duration:
        """A number of hours."""
        return Duration(3_600_000 * hours)

    @staticmethod
    def days(days: int) -> Duration:
        """A number of days of 24 hours."""
        return Duration(86_400_000 * days)

    def __post_init__(self) -> None:
        if type(self.milliseconds) is not int or self.milliseconds < 0:
            what = "Duration: a number of milliseconds is whole and not below 0, found"
            raise PlanError(what, repr(self.milliseconds))

    def __repr__(self) -> str:
        return f"Duration.of({self.milliseconds})"

    def __str__(self) -> str:
        for unit, size in (("h", 3_600_000), ("min", 60_000), ("s", 1000)):
            if self.milliseconds and self.milliseconds % size == 0:
                return f"{self.milliseconds // size} {unit}"
        return f"{self.milliseconds} ms"


DurationLike = Duration | timedelta
"""What may stand for a duration."""

_NONE = Duration(0)


class BaseWindow:
    """What all windows share.

    Attributes
    ----------
    Duration : type
        The lengths of windows by time, under the name that Storm gives them.
    """

    Duration: ClassVar[type[Duration]] = Duration


@dataclass(frozen=True)
class CountWindow(BaseWindow):
    """A window of a number of tuples, in the order of (txid, partition, position).

    A window ends `slide` tuples after the one before.
    """

    length: int
    slide: int

    def __post_init__(self) -> None:
        for name, given in (("length", self.length), ("slide", self.slide)):
            if type(given) is not int or given < 1:
                what = f"window: the {name} of a count window is a whole number above 0, found"
                raise PlanError(what, described(given))
        _check_slide(self.length, self.slide)

    @property
    def shape(self) -> str:
        """What of it may not change while windows are open."""
        return _shape(f"{self.length} tuples", self.length, self.slide)

    def __str__(self) -> str:
        return self.shape


class SlidingCountWindow(CountWindow):
    """After every `slide` tuples, the last `length` of them, or as many as there are.

    Examples
    --------
    >>> print(SlidingCountWindow.of(100, 10))
    sliding, 100 tuples every 10
    """

    @classmethod
    def of(cls, length: int, slide: int) -> Self:
        """A window of the last `length` tuples after every `slide`."""
        return cls(length, slide)


class TumblingCountWindow(CountWindow):
    """After every `length` tuples, these.

    Examples
    --------
    >>> print(TumblingCountWindow.of(100))
    tumbling, 100 tuples
    """

    @classmethod
    def of(cls, length: int) -> Self:
        """A window of each `length` tuples."""
        return cls(length, length)


@dataclass(frozen=True)
class TimeWindow(BaseWindow, ABC):
    """What windows by time share: which time counts, and what is late.

    Without a field, the time is the moment of the batch: one for all of its tuples, kept in the log
    before the batch runs. With one it is the tuple's, in milliseconds or as a timestamp, and the
    *watermark* tells how far it has come: the latest time seen of the slowest partition of the
    sources, less the lag. A window ends when the watermark has reached its end. A tuple counts as
    late where no window that could take it is kept any more, by the watermark that the batch before
    has left.

    Tuples may be out of order by `lag`. A window is kept for `lateness` after its end: each batch
    with tuples for it emits it again. A partition without tuples for `idle_after` doesn't hold the
    watermark back; with `ends_idle` all windows end once all partitions are so.
    """

    field: str | None = None
    lag: Duration = _NONE
    lateness: Duration = _NONE
    idle_after: Duration | None = None
    ends_idle: bool = False

    def withTimestampField(self, field: str) -> Self:
        """The window by the time that tuples have in a field: milliseconds, or a timestamp."""
        if not isinstance(field, str) or not field:
            what = "withTimestampField: expected the name of a field, found"
            raise OperationTypeError(what, described(field))
        return replace(self, field=field)

    def withLag(self, lag: DurationLike) -> Self:
        """The window for tuples that are out of order by up to `lag`: it ends that much later."""
        self._check_field("withLag")
        return replace(self, lag=as_duration("withLag", lag))

    def withLateness(self, lateness: DurationLike) -> Self:
        """The window kept for `lateness` after it has ended, and emitted again if more comes."""
        self._check_field("withLateness")
        return replace(self, lateness=as_duration("withLateness", lateness))

    def withIdleAfter(self, idle: DurationLike, *, end: bool = False) -> Self:
        """The window that doesn't wait for partitions which have been without tuples for `idle`.

        Parameters
        ----------
        idle : Duration or timedelta
            By the time of batches.
        end : bool
            Whether all windows that are open end, when there are no tuples at all for `idle`; what
            comes for them afterwards is late.
        """
        self._check_field("withIdleAfter")
        after = as_duration("withIdleAfter", idle)
        if after <= _NONE:
            raise PlanError("withIdleAfter: the time is above 0, found", str(after))
        return replace(self, idle_after=after, ends_idle=end)

    @property
    @abstractmethod
    def shape(self) -> str:
        """What of it may not change while windows are open."""

    def __str__(self) -> str:
        return f"{self.shape}{self._of_time()}"

    def _check_field(self, call: str) -> None:
        if self.field is None:
            what = f"{call}: the window is by the time of batches, in which nothing is late"
            raise PlanError(what, "", (), 'Call withTimestampField("time") first.')

    def _of_time(self) -> str:
        if self.field is None:
            return ""
        parts = [f", by {self.field}"]
        parts += [f", lag {self.lag}"] * (self.lag != _NONE)
        parts += [f", lateness {self.lateness}"] * (self.lateness != _NONE)
        if self.idle_after is not None:
            parts += [f", idle after {self.idle_after}", ", which ends it"][: 1 + self.ends_idle]
        return "".join(parts)


@dataclass(frozen=True)
class DurationWindow(TimeWindow):
    """A window of some time.

    It reaches back `length` from its end; the next one ends `slide` later.
    """

    length: Duration = _NONE
    slide: Duration = _NONE

    def __post_init__(self) -> None:
        for name, given in (("length", self.length), ("slide", self.slide)):
            if given <= _NONE:
                raise PlanError(f"window: the {name} of a window is above 0, found", str(given))
        _check_slide(self.length, self.slide)

    @property
    def shape(self) -> str:
        return _shape(str(self.length), self.length, self.slide)


class SlidingDurationWindow(DurationWindow):
    """At every multiple of `slide`, counted from 1970, the last `length` before it.

    Examples
    --------
    >>> window = SlidingDurationWindow.of(Duration.minutes(10), Duration.minutes(1))
    >>> print(window.withTimestampField("at").withLag(Duration.seconds(30)))
    sliding, 10 min every 1 min, by at, lag 30 s
    """

    @classmethod
    def of(cls, length: DurationLike, slide: DurationLike) -> Self:
        """A window of the last `length` at every multiple of `slide`."""
        call = f"{cls.__name__}.of"
        return cls(length=as_duration(call, length), slide=as_duration(call, slide))


class TumblingDurationWindow(DurationWindow):
    """Each `length` of time, counted from 1970.

    Examples
    --------
    >>> print(TumblingDurationWindow.of(Duration.minutes(5)))
    tumbling, 5 min
    """

    @classmethod
    def of(cls, length: DurationLike) -> Self:
        """A window of each `length` of time."""
        found = as_duration(f"{cls.__name__}.of", length)
        return cls(length=found, slide=found)


@dataclass(frozen=True)
class SessionWindow(TimeWindow):
    """Tuples that each follow the one before within a gap.

    It begins with its first tuple, and ends a gap after its last.

    Parameters
    ----------
    gap : Duration
        How long after its last tuple it ends.
    retracts : bool
        Whether it takes back what late tuples have changed.

    Examples
    --------
    >>> print(SessionWindow.of(Duration.minutes(30)).withTimestampField("at"))
    session, gap 30 min, by at
    """

    gap: Duration = _NONE
    retracts: bool = False

    @classmethod
    def of(cls, gap: DurationLike) -> Self:
        """A window that a time of `gap` without tuples ends."""
        return cls(gap=as_duration("SessionWindow.of", gap))

    def __post_init__(self) -> None:
        if self.gap <= _NONE:
            raise PlanError("window: the gap of a session is above 0, found", str(self.gap))

    def withRetractions(self) -> Self:
        """The window that takes back what it has emitted of a session which late tuples move.

        A tuple whose outputs are all null takes back the one before with its key, ``windowStart``
        and ``windowEnd``. It comes in the batch in which a session that was emitted begins earlier,
        ends later, or becomes one with another.
        """
        self._check_field("withRetractions")
        return replace(self, retracts=True)

    @property
    def shape(self) -> str:
        return f"session, gap {self.gap}"

    def __str__(self) -> str:
        return f"{super().__str__()}{', with retractions' * self.retracts}"


def as_duration(call: str, given: object) -> Duration:
    """Return a duration that was given to a call, or refuse it."""
    if isinstance(given, Duration):
        return given
    if isinstance(given, timedelta):
        return Duration(given // timedelta(milliseconds=1))
    advice = "Write Duration.seconds(10), or hand it a datetime.timedelta."
    raise OperationTypeError(f"{call}: expected a Duration, found", described(given), (), advice)


def _shape(text: str, length: object, slide: object) -> str:
    return f"tumbling, {text}" if length == slide else f"sliding, {text} every {slide}"


def _check_slide(length: Any, slide: Any) -> None:
    if slide > length:
        what = f"window: a slide of {slide} would leave tuples out of a window of {length}"
        raise PlanError(what, "", (), "A window slides by its length at most.")
