"""The driver, imported when a map is first used; statements with names in them, and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat
from struct import Struct
from typing import Any

from trident.states.errors import MissingDriverError

BYTES, LONG, JSON, DOUBLE = 17, 20, 114, 701
"""PostgreSQL's numbers for the types of elements."""
_HEAD = Struct("!iiIii")
_LENGTH = Struct("!i")
_NUMBERS = {LONG: Struct("!iq"), DOUBLE: Struct("!id")}
_NULL = b"\xff\xff\xff\xff"


def driver() -> Any:
    """Return the module `psycopg`."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingDriverError("state in PostgreSQL", "postgres", str(error)) from None
    return psycopg


def statement(text: str, **names: str) -> str:
    """Return a statement for parameters, with `names` quoted where `text` has them in braces."""
    # Where there are parameters the driver takes a % for the beginning of one.
    return definition(text, **{name: value.replace("%", "%%") for name, value in names.items()})


@lru_cache(1024)
def definition(text: str, **names: str) -> str:
    """Return the same for a statement that takes no parameters."""
    sql = driver().sql
    quoted = {name: sql.Identifier(value) for name, value in names.items()}
    composed: str = sql.SQL(text).format(**quoted).as_string()
    return composed


class Array(bytes):
    """An array in PostgreSQL's binary format."""


def array(kind: int, values: Sequence[bytes | int | float | None]) -> Array:
    """Return `values`, None for a null, as an array of one of the kinds above."""
    nulls = None in values
    number = _NUMBERS.get(kind)
    if number and nulls:
        items = [_NULL if value is None else number.pack(8, value) for value in values]
    elif number:
        items = list(map(number.pack, repeat(8), values))
    elif nulls:
        items = [_NULL if each is None else _LENGTH.pack(len(each)) + each for each in values]  # type: ignore[arg-type, operator]
    else:
        lengths = map(_LENGTH.pack, map(len, values))  # type: ignore[arg-type]
        items = list(chain.from_iterable(zip(lengths, values, strict=True)))  # type: ignore[arg-type]
    return Array(_HEAD.pack(1, nulls, kind, len(values), 1) + b"".join(items))
