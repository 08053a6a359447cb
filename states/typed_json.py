"""JSON with tags, for values that JSON has no form for: ``{"$date":"2026-01-02"}``.

An object with one name, which begins with ``$``, is such a value. A user's dict that looks like one
is wrapped, as ``{"$dict":{"$date":"tomorrow"}}``, so that it is not mistaken for one.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, isfinite, nan
from typing import Any
from uuid import UUID

from trident.states.expiry import KeepUntil
from trident.states.values import Versioned


def needs_tags(value: Any) -> bool:
    """Return whether a value, or one inside it, has no form in JSON.

    Raises TypeError for a value that has no tag either.

    Examples
    --------
    >>> needs_tags({"seen": [1, None, "x"]}), needs_tags({"seen": [date(2026, 1, 2)]})
    (False, True)
    """
    kind = type(value)
    if kind in _JSON:
        return False
    if kind is float:
        return not isfinite(value)
    if kind is list:
        return _any_needs(value)
    if kind is dict:
        inside = _any_needs(value.values())
        if set(map(type, value)) <= {str}:
            return inside
        for name in value:
            _check_name(name)
        return True
    if kind is tuple:
        _any_needs(value)
        return True
    if kind is KeepUntil or kind is Versioned:
        return needs_tags(value.value) or True
    if kind not in _TAGS:
        raise TypeError(f"a {_name(kind)}")
    if kind is Decimal and not value.is_finite():
        raise TypeError(f"the decimal {value}")
    return True


def _any_needs(values: Iterable[Any]) -> bool:
    return max(map(needs_tags, values), default=False)  # not any(): all have to be checked


def tagged(value: Any) -> Any:
    """Return the JSON form of a value for which `needs_tags` does not raise.

    Examples
    --------
    >>> tagged([date(2026, 1, 2), Decimal("1.50"), b"cat", float("nan")])
    [{'$date': '2026-01-02'}, {'$decimal': '1.50'}, {'$binary': 'Y2F0'}, {'$double': 'NaN'}]
    >>> tagged({"$date": "tomorrow"}), tagged({1: "a"})
    ({'$dict': {'$date': 'tomorrow'}}, {'$map': [[1, 'a']]})
    """
    kind = type(value)
    if kind in _JSON:
        return value
    if kind is float:
        return value if isfinite(value) else {"$double": _DOUBLES[str(value)]}
    if kind is list:
        return list(map(tagged, value))
    if kind is tuple:
        return {"$tuple": list(map(tagged, value))}
    if kind is dict:
        if not set(map(type, value)) <= {str}:
            return {"$map": [[tagged(name), tagged(item)] for name, item in value.items()]}
        inside = {name: tagged(item) for name, item in value.items()}
        return {"$dict": inside} if _tag_of(value) else inside
    if kind is KeepUntil:
        return {"$until": [tagged(value.value), _moment(value.until)]}
    if kind is Versioned:
        return {"$schema": [value.version, tagged(value.value)]}
    tag, write = _TAGS[kind]
    if kind is datetime and value.tzinfo is None:
        tag = "$timestamp_ntz"
    return {tag: write(value)}


def untagged(tree: Any) -> Any:
    """Return the value that :func:`tagged` was given.

    Raises ValueError for an unknown tag, or one with a wrong content.

    Examples
    --------
    >>> untagged([{"$date": "2026-01-02"}, {"$dict": {"$date": "tomorrow"}}, {"$map": [[1, "a"]]}])
    [datetime.date(2026, 1, 2), {'$date': 'tomorrow'}, {1: 'a'}]
    """
    if type(tree) is list:
        return list(map(untagged, tree))
    if type(tree) is not dict:
        return tree
    tag = _tag_of(tree)
    if not tag:
        return _read_dict(tree)
    read, content = _READ.get(tag), tree[tag]
    if read is None:
        raise ValueError(f"the tag {tag} is unknown")
    try:
        return read(content)
    except (TypeError, AttributeError, ArithmeticError, LookupError) as error:
        raise ValueError(f"{tag} of {content!r:.80}") from error


def utc(moment: datetime) -> datetime:
    """Return a moment with a zone in UTC; raise TypeError if it is no date in UTC."""
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise TypeError(f"the timestamp {moment}, which is no date in UTC") from error


_JSON = frozenset({int, str, bool, type(None)})
_DOUBLES: Mapping[str, str] = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    return utc(value).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


_TAGS: Mapping[type, tuple[str, Callable[[Any], str]]] = {
    date: ("$date", date.isoformat),
    datetime: ("$timestamp", _moment),
    Decimal: ("$decimal", str),
    bytes: ("$binary", lambda value: b2a_base64(value, newline=False).decode()),
    UUID: ("$uuid", str),
}


def _read_timestamp(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not UTC:
        raise ValueError(f"the timestamp {text!r} is not in UTC")
    return moment


def _read_dict(inside: dict[str, Any]) -> dict[str, Any]:
    return {name: untagged(item) for name, item in inside.items()}


def _read_until(content: list[Any]) -> KeepUntil:
    value, moment = content
    return KeepUntil(untagged(value), _read_timestamp(moment))


def _read_version(content: list[Any]) -> Versioned:
    version, value = content
    if type(version) is not int:
        raise TypeError("a version that is no number")
    return Versioned(version, untagged(value))


_READ: Mapping[str, Callable[[Any], Any]] = {
    "$date": date.fromisoformat,
    "$timestamp": _read_timestamp,
    "$timestamp_ntz": datetime.fromisoformat,
    "$decimal": Decimal,
    "$binary": lambda text: a2b_base64(text, strict_mode=True),
    "$uuid": UUID,
    "$double": {"NaN": nan, "Infinity": inf, "-Infinity": -inf}.__getitem__,
    "$tuple": lambda items: tuple(map(untagged, items)),
    "$map": lambda items: {untagged(name): untagged(item) for name, item in items},
    "$dict": _read_dict,
    "$until": _read_until,
    "$schema": _read_version,
}


def _tag_of(tree: dict[Any, Any]) -> str:
    """Return the one name of an object if it begins with $; else nothing."""
    if len(tree) != 1:
        return ""
    [name] = tree
    return name if name.startswith("$") else ""


def _check_name(name: Any) -> None:
    """Raise TypeError for a dict's key that is a container, or a float that is not finite."""
    if type(name) in (list, dict, tuple) or (needs_tags(name) and type(name) is float):
        raise TypeError(f"a dict key of type {_name(type(name))}")


def _name(kind: type) -> str:
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__
