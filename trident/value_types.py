"""Whether values are of the declared type of their field; the same on every engine."""

from __future__ import annotations

from collections.abc import Sequence, Set
from numbers import Integral, Real
from types import NoneType
from typing import Any

from trident.errors import EmittedValueError, described

PYTHON_TYPES: dict[str | None, type] = {
    **dict.fromkeys(("long", "int", "short", "byte"), int),
    **dict.fromkeys(("double", "float"), float),
    **{"string": str, "boolean": bool, "binary": bytes},
}
"""The Python type of each Spark type that is checked; values of others are left to Spark."""

_LIMITS = {"long": 2**63, "int": 2**31, "short": 2**15, "byte": 2**7}
_TEXT = ("char", "varchar")


def value_sort(kind: str) -> object:
    """What the values of a type are compared as: their Python type, else the type's name alone.

    Equal values of one sort are one key, whatever their types: 1 is the same as long and as int.

    Examples
    --------
    >>> value_sort("long") is value_sort("int"), value_sort("decimal(4,2)"), value_sort("char(9)")
    (True, 'decimal', <class 'str'>)
    """
    head = kind.partition("(")[0].partition("<")[0]
    return str if head in _TEXT else PYTHON_TYPES.get(head, head)


def conformed(operation: str, field: str, kind: str, values: Sequence[Any]) -> Sequence[Any]:
    """Check a column that a step made against its declared type, and convert what differs in form.

    Null fits every type. A whole number becomes a float where one is declared, so that its key is
    the same however it was written, and numbers of other libraries become Python's. Nothing else
    is converted: a float given for an integer would lose its fraction in silence.

    It looks at each distinct type only where all fit.

    Parameters
    ----------
    operation, field : str
        Who made it, for errors.
    kind : str
        The type, one of :data:`PYTHON_TYPES`.
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
    wanted = PYTHON_TYPES[kind]
    found = set(map(type, values))
    if found <= {wanted, NoneType} and (wanted is not int or _in_range(kind, values, found)):
        return values
    made = []
    for value in values:
        right = _converted(wanted, value)
        if right is None is not value:
            raise misfit(operation, field, kind, value)
        if wanted is int and not _in_range(kind, (right,), {type(right)}):
            raise misfit(operation, field, kind, value)
        made.append(right)
    return made


def fits(kind: str, value: object) -> bool:
    """Whether a field of the type, one of :data:`PYTHON_TYPES`, can have the value."""
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
    return value if isinstance(value, wanted) else None


def _in_range(kind: str, values: Sequence[Any], types: Set[type]) -> bool:
    """Whether integers have no more bits than their type; nulls are passed over."""
    some = [value for value in values if value is not None] if NoneType in types else values
    limit = _LIMITS[kind]
    return not some or (min(some) >= -limit and max(some) < limit)
