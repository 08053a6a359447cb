"""Types of fields: Spark's DDL names, and the Python types that stand for them."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import re
import types
import typing
import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from trident.errors import FieldError

_PYTHON: dict[object, str] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "binary",
    uuid.UUID: "string",  # Spark has no type for it
    datetime.date: "date",
    datetime.datetime: "timestamp",
    decimal.Decimal: "decimal(38,18)",
}
_ALIASES = {"bigint": "long", "integer": "int", "smallint": "short", "tinyint": "byte"}
_SIMPLE = (
    *("string", "long", "int", "short", "byte", "double", "float", "decimal"),
    *("boolean", "binary", "date", "timestamp", "timestamp_ntz"),
)
_LIMITED = ("decimal", "char", "varchar")
_NESTED = ("array", "map", "struct")
_HEAD = re.compile(r"\s*([A-Za-z_]+)\s*(.*)", re.DOTALL)
_LISTS = (list, collections.abc.Sequence)
_MAPS = (dict, collections.abc.Mapping)
_MEMBER = re.compile(
    r"(`(?:[^`]|``)+`|[^:\s]+)\s*[:\s]\s*(.+?)(?:\s+not\s+null)?", re.IGNORECASE | re.DOTALL
)


class Parts(NamedTuple):
    """What a type is made of: ``array``, ``map``, ``struct`` or itself, and the types within."""

    head: str
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@cache
def parts(kind: str) -> Parts:
    """The parts of a DDL type, as `ddl_type` writes it.

    Examples
    --------
    >>> parts("map<string,array<long>>").kinds, parts("struct<a:long,b:string>").names
    (('string', 'array<long>'), ('a', 'b'))
    >>> parts("decimal(10,2)")
    Parts(head='decimal', kinds=(), names=())
    """
    head, angle, rest = kind.partition("<")
    if not angle:
        return Parts(head.partition("(")[0].strip())
    inside = [part.strip() for part in top_level(rest[:-1])] if rest.strip() != ">" else []
    if head != "struct":
        return Parts(head, tuple(inside))
    members = [match for part in inside if (match := _MEMBER.fullmatch(part))]
    if len(members) < len(inside):
        raise FieldError("unknown type", kind, (), "Write it as struct<a:long,b:array<string>>.")
    names = tuple(match[1].strip("`").replace("``", "`") for match in members)
    return Parts(head, tuple(match[2] for match in members), names)


def ddl_of(given: Parts) -> str:
    """The DDL type of parts, where there are types within."""
    if given.head == "struct":
        members = zip(map(_as_member, given.names), given.kinds, strict=True)
        return f"struct<{','.join(map(':'.join, members))}>"
    return f"{given.head}<{','.join(given.kinds)}>"


def top_level(text: str) -> Iterator[str]:
    """The parts between the commas that no bracket encloses.

    Examples
    --------
    >>> list(top_level("a, b map<string,long>"))
    ['a', ' b map<string,long>']
    """
    depth = start = 0
    for position, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def ddl_type(declared: object) -> str | None:
    """The DDL name of a type given as a Python type, an annotation or a DDL string.

    None where the declaration says nothing, as None, `Any` and unions of several types.

    Examples
    --------
    >>> [ddl_type(x) for x in (str, int, list[float], "bigint", dict[str, bool] | None, None)]
    ['string', 'long', 'array<double>', 'long', 'map<string,boolean>', None]
    >>> ddl_type("struct<a BIGINT, `b c`: array<int>>")
    'struct<a:long,`b c`:array<int>>'
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
    if (head in _SIMPLE and not rest) or (head in _LIMITED and rest and rest[-1] == ")"):
        return head + rest
    if head in _NESTED and rest[:1] == "<" and rest[-1:] == ">":
        nested = _nested(head, parts(head + rest))
        if nested is not None:
            return nested
    raise FieldError("unknown type", text, _SIMPLE, "Nested ones are written as array<string>.")


def _nested(head: str, given: Parts) -> str | None:
    kinds = tuple(map(_parsed, given.kinds))
    if head != "struct" and len(kinds) != 1 + (head == "map"):
        return None
    return ddl_of(Parts(head, kinds, given.names))


def _as_member(name: str) -> str:
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"


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
