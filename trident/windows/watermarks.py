"""The times of tuples, in milliseconds since 1970, and the progress of partitions by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from trident.errors import FieldError, ValueTypeError, described
from trident.operations.origins import MADE, expected_origins

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_WHOLE = ("long", "int", None)
TIMESTAMPS = ("timestamp", "timestamp_ntz")


class Reached(NamedTuple):
    """The progress of one partition: its latest time, and that of its last batch with tuples."""

    time: int | None
    since: int | None


class Partitions(NamedTuple):
    """The progress of all partitions, as the state of the window keeps it.

    `latest` is the latest time of any tuple, `reached` has the active partitions by their origins,
    and `since` is the time of the last batch with tuples, where the window asks for it.
    """

    latest: int | None
    reached: Mapping[str, Reached]
    since: int | None = None

    @staticmethod
    def read(stored: Mapping[str, Any]) -> Partitions:
        """Read the partitions of an entry; an earlier version wrote none."""
        reached = {name: Reached(*each) for name, *each in stored.get("partitions", ())}
        return Partitions(stored.get("latest"), reached, stored.get("since"))

    def kept(self) -> Mapping[str, Any]:
        if self == _NONE:
            return {}
        return {
            "latest": self.latest,
            "partitions": [[name, *each] for name, each in sorted(self.reached.items())],
            "since": self.since,
        }

    def after(
        self,
        streams: Sequence[str],
        active: Mapping[str, Sequence[str]],
        origins: Sequence[str],
        times: Sequence[int],
        moment: int | None = None,
    ) -> Partitions:
        """The progress after a batch at `moment`; without `origins` all tuples have one."""
        fresh: dict[str, int] = {}
        if origins:
            for origin, time in zip(origins, times, strict=True):
                if origin not in fresh or time > fresh[origin]:
                    fresh[origin] = time
        elif times:
            fresh[streams[0] if streams else MADE] = max(times)
        known = self.reached
        reached = {}
        for origin in expected_origins(streams or (MADE,), active, [*known, *fresh]):
            before = known.get(origin, Reached(None, moment))
            if before.since is None:  # an earlier run didn't ask how long it is quiet
                before = before._replace(since=moment)
            found = fresh.get(origin)
            if found is not None:
                before = Reached(_later(before.time, found), moment)
            reached[origin] = before
        latest = self.latest
        for found in fresh.values():
            latest = _later(latest, found)
        quiet = self.since is not None or self.latest is None
        return Partitions(latest, reached, self.since if quiet and not fresh else moment)

    def watermark(self, quiet_before: int | None = None) -> int | None:
        """The least time of active partitions; None if one has no time; without any, the latest."""
        times = []
        for time, since in self.reached.values():
            if _is_quiet(since, quiet_before):
                continue
            if time is None:
                return None
            times.append(time)
        return min(times, default=self.latest)

    def are_quiet(self, quiet_before: int | None) -> bool:
        """Whether no tuple has come since then, and some had before."""
        return _is_quiet(self.since, quiet_before)


def _is_quiet(since: int | None, before: int | None) -> bool:
    return since is not None and before is not None and since <= before


def _later(time: int | None, other: int) -> int:
    return other if time is None else max(time, other)


_NONE = Partitions(None, {})


def check_time(call: str, field: str, kind: str | None) -> None:
    """Refuse a field with times that are neither milliseconds nor timestamps."""
    if kind not in (*_WHOLE, *TIMESTAMPS):
        what = f"{call}: a time is a long, in milliseconds, or a timestamp, not {kind} as in"
        raise FieldError(what, field, (), "Convert it first, in each() or map().")


def milliseconds(kind: str | None, times: Sequence[Any], call: str = "window") -> Sequence[int]:
    """Times in milliseconds; a time without a zone is in UTC, and null is refused."""
    if set(map(type, times)) <= {int}:
        return times
    return [_milliseconds(kind, time, call) for time in times]


def _milliseconds(kind: str | None, time: object, call: str) -> int:
    if type(time) is int:
        return time
    if kind in TIMESTAMPS and isinstance(time, datetime):
        aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
        return (aware - _EPOCH) // _MILLISECOND
    due = "timestamps" if kind in TIMESTAMPS else "times: whole milliseconds, or timestamps"
    raise ValueTypeError(call, f"{due} where the field is declared so", described(time))


def time_of(kind: str | None, milliseconds: int) -> Any:
    """A time as a field of the type has it."""
    if kind not in TIMESTAMPS:
        return milliseconds
    made = _EPOCH + milliseconds * _MILLISECOND
    return made if kind == "timestamp" else made.replace(tzinfo=None)
