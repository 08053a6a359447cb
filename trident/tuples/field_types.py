"""Types of fields: Spark's DDL names, and the Python types that stand for them."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import re
import types
import typing
from typing import Any

from trident.errors import FieldError

_PYTHON: dict[object, str] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "binary",
    datetime.date: "date",
    datetime.datetime: "timestamp",
    decimal.Decimal: "decimal(38,18)",
}
_ALIASES = {"bigint": "long", "integer": "int", "smallint": "short", "tinyint": "byte"}
_SIMPLE = (
    *("string", "long", "int", "short", "byte", "double", "float", "decimal"),
    *("boolean", "binary", "date", "timestamp", "timestamp_ntz"),
)
_NESTED = ("array", "map", "struct", "decimal", "char", "varchar")
_HEAD = re.compile(r"\s*([A-Za-z_]+)\s*(.*)", re.DOTALL)
_LISTS = (list, collections.abc.Sequence)
_MAPS = (dict, collections.abc.Mapping)


def ddl_type(declared: object) -> str | None:
    """The DDL name of a type given as a Python type, an annotation or a DDL string.

    Parameters
    ----------
    declared : object
        ``str``, ``int | None``, ``list[str]``, ``"long"``, ``"array<string>"`` …; None, `Any`
        and unions of several types say nothing.

    Returns
    -------
    str or None
        None where the declaration says nothing.

    Raises
    ------
    FieldError
        For a type that fields can't have.

    Examples
    --------
    >>> [ddl_type(x) for x in (str, int, list[float], "bigint", dict[str, bool] | None, None)]
    ['string', 'long', 'array<double>', 'long', 'map<string,boolean>', None]
    """
    if declared is None or declared in (Any, object, types.NoneType):
        return None
    if isinstance(declared, str):
        return _parsed(declared)
    if (known := _PYTHON.get(declared)) is not None:
        return known
    return _annotated(declared)


def _parsed(text: str) -> str:
    match = _HEAD.fullmatch(text)
    head, rest = (match[1].lower(), match[2].strip()) if match else (text, "")
    head = _ALIASES.get(head, head)
    if (head in _SIMPLE and not rest) or (head in _NESTED and rest and rest[-1] in ">)"):
        return head + rest
    raise FieldError("unknown type", text, _SIMPLE, "Nested ones are written as array<string>.")


def _annotated(declared: object) -> str | None:
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        some = [argument for argument in arguments if argument is not types.NoneType]
        return ddl_type(some[0]) if len(some) == 1 else None
    inner = [ddl_type(argument) for argument in arguments if argument is not Ellipsis]
    if origin in _LISTS and None not in inner:
        return f"array<{inner[0]}>"
    if origin in _MAPS and None not in inner:
        return f"map<{inner[0]},{inner[1]}>"
    if origin is not None or declared in (*_LISTS, *_MAPS, tuple) or _is_variable(declared):
        return None
    raise FieldError(
        "no field can have the type",
        getattr(declared, "__qualname__", repr(declared)),
        [kind.__name__ for kind in _PYTHON if isinstance(kind, type)],
        'Declare it as a Spark type, as in Fields(tags="array<string>").',
    )


def _is_variable(declared: object) -> bool:
    return isinstance(declared, typing.TypeVar | typing.ForwardRef)
