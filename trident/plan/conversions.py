"""The call that converts a field to another type, as errors advise it."""

from __future__ import annotations

from collections.abc import Mapping

from trident.tuples.fields import Fields
from trident.tuples.value_types import value_sort

_EXPRESSIONS: Mapping[tuple[object, object], str] = {
    (str, int): "int(v)",
    (str, float): "float(v)",
    (str, bool): "v == 'true'",
    (int, str): "str(v)",
    (int, float): "float(v)",
    (int, bool): "bool(v)",
    (float, str): "str(v)",
    (float, int): "int(v)",
    (float, bool): "bool(v)",
    (bool, str): "str(v).lower()",
    (bool, int): "int(v)",
    (bool, float): "float(v)",
    (bytes, str): "v.decode()",
    ("decimal", str): "str(v)",
    ("decimal", int): "int(v)",
    ("decimal", float): "float(v)",
    ("date", str): "v.isoformat()",
    ("timestamp", str): "v.isoformat()",
    ("timestamp_ntz", str): "v.isoformat()",
}


def conversion(stream: Fields, name: str, made: str, kind: str, *, nullable: bool) -> str:
    """The call that appends a field's value as another type; empty where there is no obvious one.

    `made` is what to call the new field. One that is `nullable` may hold null.

    Examples
    --------
    >>> conversion(Fields.of("args string"), "args", "id", "long", nullable=False)
    '.each("args", lambda v: [int(v)], "id long")'
    """
    wanted = value_sort(kind)
    expression = _EXPRESSIONS.get((value_sort(stream.types[name] or ""), wanted))
    if expression is None:
        return ""
    value = f"None if v is None else {expression}" if nullable else expression
    kind = "string" if wanted is str else kind
    return f'.each({_written(name)}, lambda v: [{value}], "{made} {kind}")'


def new_name(stream: Fields, name: str) -> str:
    """A field's name that the stream hasn't got, `name` itself where that is free.

    Examples
    --------
    >>> new_name(Fields("args"), "id"), new_name(Fields("id", "id_2"), "id")
    ('id', 'id_3')
    """
    name = name if name.isidentifier() else "key"
    names = (f"{name}_{number}" if number > 1 else name for number in range(1, len(stream) + 2))
    return next(free for free in names if free not in stream)


def _written(name: str) -> str:
    """A field as an argument; one string would be taken apart where a name has a space in it."""
    return f'"{name}"' if name.isidentifier() else f"Fields.typed([({name!r}, None)])"
