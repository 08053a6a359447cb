"""Divides a stream and its history, so that no row is in both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

from trident.errors import OperationTypeError, PlanError, described
from trident.tuples.field_types import parts
from trident.tuples.fields import Fields
from trident.tuples.value_types import conform, fits

_OFFSETS = {"topic": "string", "partition": "int", "offset": "long"}
"""The columns of Kafka's with a record's position."""
_ORDERED = ("long", "int", "short", "byte", "decimal", "string", "date", "timestamp")


def split_history(
    stream: Any, history: Any, until: object, declared: Fields
) -> tuple[Any, Any, str]:
    """Return both frames, each without the rows that are the other's, and what `until` says.

    A row at the place itself is the stream's, and so is one that has null there.
    """
    if not isinstance(until, Mapping) or not until:
        advice = 'A column and a value, {"at": datetime(2026, 1, 31, tzinfo=UTC)}; or offsets of '
        advice += 'Kafka, {"clicks": {"0": 81200}}.'
        what = "newStream: until= takes a dict, found"
        raise OperationTypeError(what, described(until), (), advice)
    if any(isinstance(value, Mapping) for value in until.values()):
        ends = _read_offsets(until, declared)
        text = json.dumps(ends)

        def before(frame: Any) -> Any:
            topic, partition, offset = (frame[name] for name in _OFFSETS)
            tests = [
                (topic == name) & (partition == number) & (offset < end)
                for name, partitions in ends.items()
                for number, end in partitions.items()
            ]
            return reduce(or_, tests)
    else:
        name, value = _read_column(until, declared)
        text = f"{name} {value}"

        def before(frame: Any) -> Any:
            return frame["`" + name.replace("`", "``") + "`"] < value

    earlier = before(stream)
    return stream.where(earlier.isNull() | ~earlier), history.where(before(history)), text


def _read_column(until: Mapping[Any, Any], declared: Fields) -> tuple[str, Any]:
    """The column, and the first value in it that belongs to the stream."""
    if len(until) > 1:
        raise PlanError("newStream: until= takes one column, found", ", ".join(map(str, until)))
    [(name, value)] = until.items()
    if name not in declared.types:
        raise PlanError("newStream: until= names a missing field", str(name), declared.names)
    kind = str(declared.types[name])
    if parts(kind).head not in _ORDERED:
        advice = "A time without its zone is another one in each session."
        what = f"newStream: until= can't take a {kind}, found the field"
        raise PlanError(what, str(name), _ORDERED, advice if kind == "timestamp_ntz" else "")
    if value is None or not fits(kind, value):
        what = f"newStream: until= takes a {kind} for the field {name!r}, found"
        zoned = "With its time zone, as datetime.now(UTC) has." if kind == "timestamp" else ""
        raise PlanError(what, described(value), (), zoned)
    return name, conform("", name, kind, [value])[0]


def _read_offsets(until: Mapping[Any, Any], declared: Fields) -> dict[str, dict[int, int]]:
    """The first offset that belongs to the stream, by topic and partition."""
    found = {name: declared.types.get(name) for name in _OFFSETS}
    if found != _OFFSETS:
        advice = "Select these columns of Kafka's too, and project them away behind newStream."
        what = "newStream: until= with offsets takes the fields topic, partition and offset, found"
        raise PlanError(what, str(declared), (), advice)
    ends = {}
    for topic, offsets in until.items():
        try:
            known = dict(sorted((int(str(number)), end) for number, end in offsets.items()))
        except (ValueError, TypeError, AttributeError):
            known = {}
        fit = all(type(end) is int and 0 <= end < 2**63 for end in known.values())
        if not known or not fit or len(known) < len(offsets):  # 0 and "0" are one partition
            advice = 'As in {"clicks": {"0": 81200, "1": 79013}}.'
            what = f"newStream: until= takes the offset of each partition of {topic!r}, found"
            raise PlanError(what, described(offsets), (), advice)
        ends[str(topic)] = known
    return dict(sorted(ends.items()))
