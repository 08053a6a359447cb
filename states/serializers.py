"""Serializers: make bytes of stored values, and values of bytes."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from trident.states.errors import CorruptStateError, SerializationError
from trident.states.typed_json import needs_tags, tagged, untagged
from trident.states.values import are_longs

_EXACT = frozenset({int, str, bool, type(None)})
_ALLOWED = (
    "JSON keeps None, bool, int of 64 bits, float, str, bytes, date, datetime, Decimal, UUID, and "
    "lists, tuples and dicts of them; convert the value, or use PickleSerializer()."
)
TAGGED = b" "
"""The first byte of a document with tags. No document of Storm or of an earlier version begins so:
their dicts with a ``$`` stay dicts."""


class Serializer(ABC):
    """Turns the values of a map into bytes and back, as Storm's does.

    Runs wherever the map lives (tasks, driver, readers) and must pickle. What :meth:`serialize`
    accepts must come back from :meth:`deserialize` equal and of the same type.

    A value of the user's stands alone in a non-transactional state. A transactional state makes the
    list ``[txid, value]`` of it, an opaque one ``[txid, curr, prev]``, with the attempt as a fourth
    element where that is not 0.

    Examples
    --------
    >>> class Texts(Serializer):
    ...     def serialize(self, value):
    ...         return value.encode()
    ...     def deserialize(self, data):
    ...         return data.decode()
    >>> Texts().deserialize(Texts().serialize("rex"))
    'rex'
    """

    @abstractmethod
    def serialize(self, value: Any) -> bytes:
        """Return the bytes of a value; raises SerializationError for one that can't be kept."""

    @abstractmethod
    def deserialize(self, data: bytes) -> Any:
        """Return the value that :meth:`serialize` was given; raises for bytes of anything else."""


@dataclass(frozen=True)
class JSONSerializer(Serializer):
    """Storm's JSON: ``5``, transactional ``[txid,value]``, opaque ``[txid,curr,prev]``.

    An attempt other than 0 is a fourth element of an opaque value. Storm reads what attempts 0
    wrote, and what Storm wrote is read as attempt 0.

    A value without a form in JSON is an object with one name that begins with ``$``; see
    `trident.states.typed_json`. A document with such values begins with a space. In any other
    document such an object is a plain dict.

    Raises
    ------
    SerializationError
        For a value that would not come back: sets, integers over 64 bits, subclasses, objects.

    Examples
    --------
    >>> from decimal import Decimal
    >>> json = JSONSerializer()
    >>> json.serialize([3, 7, 4]), json.deserialize(b'[3,"x",null,2]')
    (b'[3,7,4]', [3, 'x', None, 2])
    >>> json.serialize(Decimal("1.50")), json.serialize({"$decimal": "1.50"})
    (b' {"$decimal":"1.50"}', b'{"$decimal":"1.50"}')
    """

    def serialize(self, value: Any) -> bytes:
        [data] = dump_json([value], tags=need_tags([value]))
        return data

    def deserialize(self, data: bytes) -> Any:
        parsed = orjson.loads(data)
        return untagged(parsed) if data.startswith(TAGGED) else parsed


@dataclass(frozen=True)
class PickleSerializer(Serializer):
    """Python's pickle: keeps every picklable value, and is read by Python only.

    Unpickling runs code that the bytes name: use it only where nobody else can write the store.

    Raises
    ------
    SerializationError
        For a value that does not pickle.

    Examples
    --------
    >>> pickled = PickleSerializer()
    >>> pickled.deserialize(pickled.serialize((1, {2})))
    (1, {2})
    """

    def serialize(self, value: Any) -> bytes:
        try:
            return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            allowed = "PickleSerializer keeps what pickle keeps."
            raise SerializationError("value", str(error), allowed) from error

    def deserialize(self, data: bytes) -> Any:
        return pickle.loads(data)


def dump_all(serializer: Serializer, values: Sequence[Any]) -> list[bytes]:
    """Return the bytes of values; JSON is made of all at once."""
    if type(serializer) is not JSONSerializer:
        try:
            return [serializer.serialize(value) for value in values]
        except StopIteration as error:  # a loop around would take it for its end
            advice = "Let serialize() raise another error, or give next() a default."
            found = "a StopIteration of its serializer"
            raise SerializationError("value", found, advice) from error
    if are_longs(values):
        return list(map(b"%d".__mod__, values))
    return dump_json(values, tags=need_tags(values))


def load_all(
    serializer: Serializer,
    data: Sequence[bytes | None],
    make: Callable[[Any], Any] = lambda value: value,
) -> list[Any]:
    """Return what `make` makes of each value in `data`, and None for None.

    Raises CorruptStateError for bytes that are no such value.
    """
    found: list[Any] = []
    load = serializer.deserialize
    try:
        for item in data:
            found.append(None if item is None else make(load(item)))
    except Exception as error:  # unpickling may raise anything
        position = len(found)
        raise CorruptStateError(
            f"the stored value at position {position} of {len(data)}",
            f"{data[position]!r:.80} ({type(error).__name__}: {error})",
            "Was it written by another serializer or another kind of map?",
        ) from error
    return found


def need_tags(values: Sequence[Any]) -> bool:
    """Return whether any value has no form in JSON.

    Raises SerializationError for a value that can't come back.
    """
    if set(map(type, values)) <= _EXACT:
        return False  # also without values
    try:
        return max(map(needs_tags, values))  # not any(): it would skip the checks after the first
    except TypeError as error:
        raise SerializationError("value", str(error), _ALLOWED) from None
    except RecursionError as error:
        raise SerializationError("value", "a value nested too deeply", _ALLOWED) from error


def dump_json(rows: Iterable[Any], *, tags: bool = False) -> list[bytes]:
    """Return the JSON of values; `tags` says whether any value may need tags."""
    try:
        return list(map(_with_tags if tags else orjson.dumps, rows))
    except TypeError as error:  # an int over 64 bits, a lone surrogate, too many levels
        raise SerializationError("value", str(error), _ALLOWED) from error


def _with_tags(row: Any) -> bytes:
    return TAGGED + orjson.dumps(tagged(row)) if needs_tags(row) else orjson.dumps(row)
