"""Values against the declared type of their field; the same on every engine."""

from __future__ import annotations

from collections.abc import Sequence
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


def conformed(operation: str, field: str, kind: str, values: Sequence[Any]) -> Sequence[Any]:
    """A column that a step made, of its declared type; null fits every type.

    A whole number becomes a float where one is declared, so that its key is the same however it
    was written, and numbers of other libraries become Python's. Nothing else is converted: a
    float given for an integer would lose its fraction in silence.

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
        For a value of another type.

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
    if set(map(type, values)) <= {wanted, NoneType}:
        return values
    return [_converted(operation, field, kind, wanted, value) for value in values]


def _converted(operation: str, field: str, kind: str, wanted: type, value: Any) -> Any:
    if value is None or type(value) is wanted:
        return value
    if not isinstance(value, bool):
        if wanted is int and isinstance(value, Integral):
            return int(value)
        if wanted is float and isinstance(value, Real):
            return float(value)
        if isinstance(value, wanted):
            return value
    problem = (
        f"emitted {described(value)} for the field {field!r}, which is declared {kind}: "
        "emit that type, or declare another"
    )
    raise EmittedValueError(operation, problem)
