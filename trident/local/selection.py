"""Values by field: what an operation is handed of a tuple."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from trident.fields import Fields
from trident.operations import Operation
from trident.rows import Row
from trident.tuples import tuple_type

Pick = Callable[[Row], Row]


def picker(fields: Fields, wanted: Fields) -> Pick:
    """A callable from a tuple of `fields` to the plain tuple of the `wanted` ones.

    Examples
    --------
    >>> picker(Fields("a", "b", "c"), Fields("c", "a"))((1, 2, 3))
    (3, 1)
    """
    if wanted.names == fields.names:
        return _same
    indexes = [fields.index(name) for name in wanted]
    if len(indexes) == 1:
        index = indexes[0]
        return lambda row: (row[index],)
    if not indexes:
        return lambda row: ()
    return itemgetter(*indexes)


def tuple_maker(operation: Operation, fields: Fields, inputs: Fields) -> Callable[[Row], Any]:
    """A callable from a tuple of `fields` to what `operation` is handed: its input fields.

    An operation that is not positional is handed a `TridentTuple`.
    """
    pick = picker(fields, inputs)
    if operation.positional:
        return pick
    make = tuple_type(fields.select(inputs))
    if pick is _same:
        return make
    return lambda row: make(pick(row))


def column(fields: Fields, rows: Sequence[Row], name: str) -> list[Any]:
    """One field of all tuples."""
    return list(map(itemgetter(fields.index(name)), rows))


def _same(row: Row) -> Row:
    return row
