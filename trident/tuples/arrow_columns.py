"""Columns as Arrow arrays, and as Python values again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TYPES: Mapping[type, pa.DataType] = {
    **{str: pa.string(), int: pa.int64(), float: pa.float64()},
    **{bool: pa.bool_(), bytes: pa.binary()},
}
_LONG = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
_MOST = 2**28
"""From this many bytes on, repeated texts stay in a list, which shares them."""


def array_of(values: Sequence[Any]) -> pa.Array | None:
    """A column as Arrow; None where not all values would come back as they are.

    They do where all but the nulls are of one type of these: text without lone surrogates, integers
    of 64 bits, floats, bools and bytes.
    """
    kinds = set(map(type, values)) - {NoneType}
    kind = _TYPES.get(kinds.pop()) if len(kinds) == 1 else None
    if kind is None:
        return None
    try:
        made = pa.array(values, kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    return made if isinstance(made, pa.Array) else None  # over 2 GB of text are several


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array | None:
    """A column as :func:`combined` gives it; None if Python's values would change.

    They are of the types that :func:`array_of` makes.
    """
    return combined(column) if column.type in _TYPES.values() else None


def combined(column: pa.Array | pa.ChunkedArray) -> pa.Array | None:
    """A column as one array; None where that has over 2 GB of text.

    Numbers are copied: a spout that made Arrow of NumPy's shares their memory, and may reuse it.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if chunks and not pa.types.is_primitive(column.type):
        return chunks[0] if len(chunks) == 1 else concatenated(chunks)
    return concatenated([*chunks, pa.nulls(0, column.type)])


def repeated_rows(counts: Sequence[int]) -> pa.Array:
    """The position of each count, as often as it says; a bool says once or not at all."""
    return pa.array(np.repeat(np.arange(len(counts)), counts))


def rows_of(places: range) -> pa.Array:
    """The positions of a range."""
    return pa.array(np.arange(places.start, places.stop, places.step))


def taken(column: pa.Array, rows: pa.Array) -> pa.Array | None:
    """The values at these positions; None if Arrow can't take them for the type, or if a list is
    better, as it has long values that repeat in memory only once."""
    try:
        if len(rows) > len(column) and column.type in _LONG:
            lengths = pc.binary_length(column).take(rows)
            if (pc.sum(lengths).as_py() or 0) > _MOST:
                return None
        return column.take(rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def concatenated(columns: Sequence[pa.Array]) -> pa.Array | None:
    """The columns one after the other; None where they are not of one type."""
    if len({column.type for column in columns}) > 1:
        return None
    try:
        return pa.concat_arrays(columns)
    except pa.ArrowInvalid:  # over 2 GB of text
        return None


def utf8(column: pa.Array) -> list[bytes] | None:
    """A column of strings as UTF-8; None where it holds anything else."""
    if column.null_count or column.type not in (pa.string(), pa.large_string()):
        return None
    return cast("list[bytes]", column.cast(pa.large_binary()).to_pylist())


def python_values(column: pa.Array) -> list[Any]:
    """The values of a column as Python has them on either engine: moments in UTC, maps as dicts.

    Spark hands them over in the session's time zone, which is nothing of theirs.
    """
    kind = column.type
    if not pa.types.is_nested(kind) and not pa.types.is_timestamp(kind):
        return cast("list[Any]", column.to_pylist())
    if _holds(kind, _is_zoned):
        column = column.cast(_in_utc(kind))
    if _holds(kind, pa.types.is_map):
        return cast("list[Any]", column.to_pylist(maps_as_pydicts="strict"))  # else lists of pairs
    return cast("list[Any]", column.to_pylist())


def _holds(kind: pa.DataType, what: Callable[[pa.DataType], bool]) -> bool:
    return what(kind) or any(_holds(part.type, what) for part in _parts(kind))


def _is_zoned(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _parts(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(index) for index in range(kind.num_fields)]


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """The type with all moments in UTC, as the zone of which Python's `datetime.UTC` is made."""
    if _is_zoned(kind):
        return pa.timestamp(kind.unit, "+00:00")
    parts = [part.with_type(_in_utc(part.type)) for part in _parts(kind)]
    if pa.types.is_struct(kind):
        return pa.struct(parts)
    if pa.types.is_map(kind):
        return pa.map_(*parts[0].type)
    if pa.types.is_large_list(kind):
        return pa.large_list(*parts)
    return pa.list_(*parts) if pa.types.is_list(kind) else kind
