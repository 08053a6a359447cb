"""Whether values are of the declared type of their field; the same on every engine."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from datetime import date, datetime
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from functools import cache
from numbers import Integral, Real
from types import NoneType
from typing import Any

from trident.errors import EmittedValueError, described

_SORTS: dict[str, type] = {
    **dict.fromkeys(("long", "int", "short", "byte"), int),
    **dict.fromkeys(("double", "float"), float),
    **dict.fromkeys(("string", "char", "varchar"), str),
    **{"boolean": bool, "binary": bytes},
}
_TYPES: dict[str, type] = {
    **_SORTS,
    **{"date": date, "timestamp": datetime, "timestamp_ntz": datetime, "decimal": Decimal},
}
LIMITS = {"long": 2**63, "int": 2**31, "short": 2**15, "byte": 2**7}
"""What integers of each type are below; its negative is the least."""
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_EXACT = Context(prec=80, traps=[Inexact, InvalidOperation])


@cache
def python_type(kind: str) -> type | None:
    """The Python type of the values of a Spark type; None where they are left to Spark.

    Examples
    --------
    >>> python_type("varchar(9)"), python_type("array<long>")
    (<class 'str'>, None)
    """
    return None if "<" in kind else _TYPES.get(kind.partition("(")[0].strip())


def value_sort(kind: str) -> object:
    """What values of a type are compared as: their Python type, or the type's name.

    Equal values of one sort are one key, whatever their types: 1 is the same as long and as int.

    Examples
    --------
    >>> value_sort("long") is value_sort("int"), value_sort("decimal(4,2)"), value_sort("char(9)")
    (True, 'decimal', <class 'str'>)
    """
    head = kind.partition("(")[0].partition("<")[0]
    return _SORTS.get(head, head)


def summed_decimal(kind: str) -> str:
    """The type of the sum of decimals, as Spark has it.

    Examples
    --------
    >>> summed_decimal("decimal(10,2)"), summed_decimal("decimal(38,18)")
    ('decimal(20,2)', 'decimal(38,18)')
    """
    precision, unit = _digits(kind)
    return f"decimal({min(precision + 10, 38)},{-unit.adjusted()})"


def conformed(operation: str, field: str, kind: str, values: Sequence[Any]) -> Sequence[Any]:
    """Check a column that a step made against its declared type, and convert what differs in form.

    Null fits every type. A whole number becomes a float where one is declared, so that its key is
    the same however it was written, a decimal gets the digits after the point that are declared,
    numbers of other libraries become Python's, and subclasses of text and bytes plain ones. Nothing
    else is converted: a float given for an integer would lose its fraction in silence.

    It looks at each distinct type only where all fit.

    Parameters
    ----------
    operation, field : str
        Who made it, for errors.
    kind : str
        The type, one that has a `python_type`.
    values : sequence
        The column.

    Raises
    ------
    EmittedValueError
        For a value of another type, and a whole number of more bits.

    Examples
    --------
    >>> conformed("f", "x", "double", [1, 2.5, None])
    [1.0, 2.5, None]
    >>> conformed("f", "n", "long", [1, 2.5])
    Traceback (most recent call last):
    ...
    trident.errors.EmittedValueError: f emitted float 2.5 for the field 'n', which is declared
    long: emit that type, or declare another
    """
    wanted = python_type(kind)
    assert wanted is not None
    found = set(map(type, values))
    plain = found <= {wanted, NoneType} and wanted is not Decimal
    if plain and (wanted is not int or _in_range(kind, values, found)):
        return values
    made = []
    for value in values:
        right = _decimal(kind, value) if wanted is Decimal else _converted(wanted, value)
        if right is None is not value:
            raise misfit(operation, field, kind, value)
        if wanted is int and not _in_range(kind, (right,), {type(right)}):
            raise misfit(operation, field, kind, value)
        made.append(right)
    return made


def fits(kind: str, value: object) -> bool:
    """Whether a field of the type, one that has a `python_type`, can have the value."""
    try:
        conformed("", "", kind, (value,))
    except EmittedValueError:
        return False
    return True


def misfit(operation: str, field: str, kind: str, value: object) -> EmittedValueError:
    """The error for a value that a field of the type can't have."""
    problem = (
        f"emitted {described(value)} for the field {field!r}, which is declared {kind}: "
        "emit that type, or declare another"
    )
    return EmittedValueError(operation, problem)


def _converted(wanted: type, value: Any) -> Any:
    """The value converted to the type; None where it can't be."""
    if value is None or type(value) is wanted:
        return value
    if isinstance(value, bool):
        return None
    if wanted is int and isinstance(value, Integral):
        return int(value)
    if wanted is float and isinstance(value, Real):
        return float(value)
    if not isinstance(value, wanted) or (wanted is date and isinstance(value, datetime)):
        return None
    if isinstance(value, str):
        return "".join((value,))  # plain text, whatever its class is shown as
    return b"".join((value,)) if isinstance(value, bytes) else value


def _decimal(kind: str, value: Any) -> Decimal | None:
    """The number with the declared digits after the point; None where it doesn't fit."""
    precision, unit = _digits(kind)
    if type(value) is bool:
        return None
    given = Decimal(int(value)) if isinstance(value, Integral) else value
    if not isinstance(given, Decimal) or not given.is_finite():
        return None
    try:
        right = given.quantize(unit, context=_EXACT)
    except DecimalException:
        return None
    if len(right.as_tuple().digits) > precision:
        return None
    return right or right.copy_abs()  # zero has no sign


@cache
def _digits(kind: str) -> tuple[int, Decimal]:
    """How many digits a decimal has, and its smallest unit."""
    found = _DECIMAL.fullmatch(kind)
    precision, scale = (found[1], found[2] or 0) if found else (10, 0)  # as Spark has it
    return int(precision), Decimal(1).scaleb(-int(scale))


def _in_range(kind: str, values: Sequence[Any], types: Set[type]) -> bool:
    """Whether integers have no more bits than their type; nulls are passed over."""
    some = [value for value in values if value is not None] if NoneType in types else values
    limit = LIMITS[kind]
    return not some or (min(some) >= -limit and max(some) < limit)
