"""How stored values become bytes: in bulk, on parallel lists, one method pair a kind of map."""

from __future__ import annotations

import pickle
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Any

import orjson

from trident.states.errors import CorruptStateError, SerializationError
from trident.states.typed_json import needs_tags, tagged, untagged
from trident.states.values import OpaqueEntries, OpaqueValue, TransactionalValue, are_longs

_EXACT = frozenset({int, str, bool, type(None)})
_ALLOWED = (
    "JSON keeps None, bool, int of 64 bits, float, str, bytes, date, datetime, Decimal, UUID, and "
    "lists, tuples and dicts of them; convert the value, or use PickleSerializer()."
)


class Serializer(ABC):
    """Turns the values of a map into bytes and back.

    Runs wherever the map lives (tasks, driver, readers) and must pickle. Each method takes
    parallel lists and answers with a list of the same length and order. What `dumps_…` accepts
    must come back from `loads_…` equal and of the same type. `loads_…` answers None for each None
    (a key that is absent).
    """

    @abstractmethod
    def dumps_plain(self, values: Sequence[Any]) -> list[bytes]:
        """Return the bytes of values that stand alone."""

    @abstractmethod
    def loads_plain(self, data: Sequence[bytes | None]) -> list[Any]:
        """Return the values that :meth:`dumps_plain` was given."""

    @abstractmethod
    def dumps_transactional(self, txids: Sequence[int], values: Sequence[Any]) -> list[bytes]:
        """Return the bytes of values and the batches that wrote them."""

    @abstractmethod
    def loads_transactional(self, data: Sequence[bytes | None]) -> list[TransactionalValue | None]:
        """Return what :meth:`dumps_transactional` was given."""

    @abstractmethod
    def dumps_opaque(
        self,
        txids: Sequence[int],
        attempts: Sequence[int],
        currs: Sequence[Any],
        prevs: Sequence[Any],
    ) -> list[bytes]:
        """Return the bytes of opaque values, given as four columns."""

    @abstractmethod
    def loads_opaque(self, data: Sequence[bytes | None]) -> Sequence[OpaqueValue | None]:
        """Return what :meth:`dumps_opaque` was given, a value a key.

        As :class:`~trident.states.values.OpaqueEntries` where that saves the objects.
        """


@dataclass(frozen=True)
class JSONSerializer(Serializer):
    """Storm's JSON: ``5``, transactional ``[txid,value]``, opaque ``[txid,curr,prev]``.

    An attempt other than 0 is a fourth element of an opaque value. Storm reads what attempts 0
    wrote, and what Storm wrote is read as attempt 0.

    A document that begins with a space holds values which JSON has no form for, as objects with one
    name that begins with ``$``: see :mod:`trident.states.typed_json`. In all others such an object
    is a dict like any other.

    Raises
    ------
    SerializationError
        For a value that would not come back: sets, integers over 64 bits, subclasses, objects.
    CorruptStateError
        For bytes that are not such JSON.

    Examples
    --------
    >>> from decimal import Decimal
    >>> json = JSONSerializer()
    >>> json.dumps_opaque([3, 3], [0, 2], [7, "x"], [4, None])
    [b'[3,7,4]', b'[3,"x",null,2]']
    >>> list(json.loads_opaque([b"[3,7,4]", None]))
    [OpaqueValue(txid=3, attempt=0, curr=7, prev=4), None]
    >>> json.dumps_plain([Decimal("1.50"), {"$decimal": "1.50"}])
    [b' {"$decimal":"1.50"}', b'{"$decimal":"1.50"}']
    """

    def dumps_plain(self, values: Sequence[Any]) -> list[bytes]:
        if are_longs(values):
            return list(map(b"%d".__mod__, values))
        return _dumps(values, tags=_need_tags(values))

    def loads_plain(self, data: Sequence[bytes | None]) -> list[Any]:
        return _loads(data, _parsed)

    def dumps_transactional(self, txids: Sequence[int], values: Sequence[Any]) -> list[bytes]:
        if are_longs(values):
            return list(map(b"[%d,%d]".__mod__, zip(txids, values, strict=True)))
        tags = _need_tags(values)
        return _dumps(map(list, zip(txids, values, strict=True)), tags=tags)

    def loads_transactional(self, data: Sequence[bytes | None]) -> list[TransactionalValue | None]:
        return _loads(data, _parsed_transactional)

    def dumps_opaque(
        self,
        txids: Sequence[int],
        attempts: Sequence[int],
        currs: Sequence[Any],
        prevs: Sequence[Any],
    ) -> list[bytes]:
        tags = _need_tags(currs) | _need_tags(prevs)
        if not any(attempts) and not tags:
            if are_longs(currs) and are_longs(prevs):
                return list(map(b"[%d,%d,%d]".__mod__, zip(txids, currs, prevs, strict=True)))
            new, old = _longs_or_nulls(currs), _longs_or_nulls(prevs)
            if new is not None and old is not None:
                return list(map(b"[%d,%b,%b]".__mod__, zip(txids, new, old, strict=True)))
            return _dumps(map(list, zip(txids, currs, prevs, strict=True)))
        rows = (
            [txid, curr, prev, attempt] if attempt else [txid, curr, prev]
            for txid, attempt, curr, prev in zip(txids, attempts, currs, prevs, strict=True)
        )
        return _dumps(rows, tags=tags)

    def loads_opaque(self, data: Sequence[bytes | None]) -> Sequence[OpaqueValue | None]:
        return _number_columns(data) or _opaque_columns(data) or _loads(data, _parsed_opaque)


@dataclass(frozen=True)
class PickleSerializer(Serializer):
    """Python's pickle: keeps every picklable value, and is read by Python only.

    Unpickling runs code that the bytes name: use it only where nobody else can write the store.

    Raises
    ------
    SerializationError
        For a value that does not pickle.
    CorruptStateError
        For bytes that do not unpickle here, for example because a class is not importable.

    Examples
    --------
    >>> pickled = PickleSerializer()
    >>> pickled.loads_plain(pickled.dumps_plain([(1, {2})]))
    [(1, {2})]
    """

    def dumps_plain(self, values: Sequence[Any]) -> list[bytes]:
        return _pickled(values)

    def loads_plain(self, data: Sequence[bytes | None]) -> list[Any]:
        return _loads(data, pickle.loads)

    def dumps_transactional(self, txids: Sequence[int], values: Sequence[Any]) -> list[bytes]:
        return _pickled(zip(txids, values, strict=True))

    def loads_transactional(self, data: Sequence[bytes | None]) -> list[TransactionalValue | None]:
        return _loads(data, lambda item: TransactionalValue(*pickle.loads(item)))

    def dumps_opaque(
        self,
        txids: Sequence[int],
        attempts: Sequence[int],
        currs: Sequence[Any],
        prevs: Sequence[Any],
    ) -> list[bytes]:
        return _pickled(zip(txids, attempts, currs, prevs, strict=True))

    def loads_opaque(self, data: Sequence[bytes | None]) -> list[OpaqueValue | None]:
        return _loads(data, lambda item: OpaqueValue(*pickle.loads(item)))


def _need_tags(values: Sequence[Any]) -> bool:
    """Whether any of the values has no form in JSON; a list of plain scalars costs one pass in C.

    Raises SerializationError for one that would not come back.
    """
    if set(map(type, values)) <= _EXACT:
        return False  # also where there are none
    try:
        return max(map(needs_tags, values))  # of all: not any(), which ends at the first
    except TypeError as error:
        raise SerializationError("value", str(error), _ALLOWED) from None
    except RecursionError as error:
        raise SerializationError("value", "a value nested too deeply", _ALLOWED) from error


# Numbers are written without orjson, which takes and returns a page of memory for each value: for
# 100,000 of them in a process with little to spare, ten times as slow.
def _longs_or_nulls(values: Sequence[Any]) -> list[bytes] | None:
    """Return the JSON of integers and nulls; None where there is anything else."""
    if not set(map(type, values)) <= {int, type(None)}:
        return None
    texts = [b"null" if value is None else b"%d" % value for value in values]
    return texts if max(map(len, texts), default=0) < _LONGEST_LONG else None


def _dumps(rows: Iterable[Any], *, tags: bool = False) -> list[bytes]:
    try:
        return list(map(_with_tags if tags else orjson.dumps, rows))
    except TypeError as error:  # an int over 64 bits, a lone surrogate, too many levels
        raise SerializationError("value", str(error), _ALLOWED) from error


def _with_tags(row: Any) -> bytes:
    return _TAGGED + orjson.dumps(tagged(row)) if needs_tags(row) else orjson.dumps(row)


def _pickled(rows: Iterable[Any]) -> list[bytes]:
    try:
        return list(map(pickle.dumps, rows, repeat(pickle.HIGHEST_PROTOCOL)))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise SerializationError(
            "value", str(error), "PickleSerializer keeps what pickle keeps."
        ) from error


def _loads(data: Sequence[bytes | None], load: Callable[[bytes], Any]) -> list[Any]:
    loaded: list[Any] = []
    try:
        for item in data:
            loaded.append(None if item is None else load(item))
    except Exception as error:  # unpickling may raise anything
        position = len(loaded)
        raise CorruptStateError(
            f"the stored value at position {position} of {len(data)}",
            f"{data[position]!r:.80} ({type(error).__name__}: {error})",
            "Was it written by another serializer or another kind of map?",
        ) from error
    return loaded


_ABSENT = b"[0,null,null]"
_LONGEST_LONG = len(str(2**63 - 1))
_NUMBERS = b"0123456789+-.eEnul,[]\n"
"""The bytes of which numbers, nulls and arrays of them are made."""
_NESTED = frozenset({list, dict})
_OF_NUMBERS = re.compile(rb"\[[^]\[,\"{]+,[^]\[,\"{]+,[^]\[,\"{]+\]")
_TAGGED = b" "
"""What a document with tags begins with. No other one begins so, neither Storm's nor one of earlier
versions: their dicts with a ``$`` stay what they are."""


def _parsed(item: bytes) -> Any:
    parsed = orjson.loads(item)
    return untagged(parsed) if item.startswith(_TAGGED) else parsed


def _parsed_transactional(item: bytes) -> TransactionalValue:
    txid, value = _parsed(item)
    if type(txid) is not int:
        raise ValueError("not [txid,value]")
    return TransactionalValue(txid, value)


def _number_columns(data: Sequence[bytes | None]) -> OpaqueEntries | None:
    """Parse entries of numbers and nulls as one array, in half of the time; None for any others.

    Attempts are 0 here: an entry with another one has a fourth field.
    """
    first = next(filter(None, data), _ABSENT)
    if not _OF_NUMBERS.fullmatch(first):  # as most others then
        return None
    text = b"\n".join([_ABSENT if item is None else item for item in data])
    count = len(data)
    # Each of so many items begins with the one [ in it, ends with the one ], and has no strings.
    apart = text.count(b"]\n[") == text.count(b"\n") == count - 1
    whole = text[:1] == b"[" and text[-1:] == b"]" and apart
    if not whole or not text.count(b"[") == text.count(b"]") == count:
        return None
    if text.count(b",") != 2 * count or text.translate(None, _NUMBERS):
        return None
    try:
        # The bools are where items meet; all have three fields where each fourth one is a bool.
        fields = orjson.loads(text.replace(b"]\n[", b",true,"))
    except ValueError:
        return None
    if len(fields) != 4 * count - 1 or not set(map(type, fields[3::4])) <= {bool}:
        return None
    txids = fields[::4]
    if set(map(type, txids)) != {int}:
        return None
    return OpaqueEntries(txids, [0] * count, fields[1::4], fields[2::4])


def _opaque_columns(data: Sequence[bytes | None]) -> OpaqueEntries | None:
    """Look at all values by column, in a third of the time; None where any is no such value."""
    try:
        # Each by itself: joined by commas, b"[1,2" and b"3]" would pass for one.
        items = [_ABSENT if item is None else item for item in data]
        rows = list(map(orjson.loads, items))
    except ValueError:
        return None
    if not set(map(type, rows)) <= {list}:
        return None
    lengths = set(map(len, rows))
    if not lengths or not lengths <= {3, 4}:
        return None
    attempts = [0] * len(rows)
    if 4 in lengths:
        attempts = [row[3] if len(row) == 4 else 0 for row in rows]
    # Not zip(*rows), which would make an iterator for each of them.
    txids, currs, prevs = ([row[place] for row in rows] for place in range(3))
    if set(map(type, txids)) | set(map(type, attempts)) != {int}:
        return None
    # Only an object or an array can be, or hold, a value with a tag.
    if not _NESTED.isdisjoint(set(map(type, currs)) | set(map(type, prevs))) and (
        _TAGGED[0] in set(map(itemgetter(0), items))
    ):
        return None
    return OpaqueEntries(txids, attempts, currs, prevs)


def _parsed_opaque(item: bytes) -> OpaqueValue:
    fields = _parsed(item)
    if len(fields) == 3:
        fields.append(0)
    txid, curr, prev, attempt = fields
    if type(txid) is not int or type(attempt) is not int:
        raise ValueError("not [txid,curr,prev] or [txid,curr,prev,attempt]")
    return OpaqueValue(txid, attempt, curr, prev)
