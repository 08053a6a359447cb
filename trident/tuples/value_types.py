"""Whether values are of the declared type of their field; the same on every engine."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence, Set
from datetime import UTC, date, datetime
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from functools import cache
from itertools import chain, islice, repeat
from numbers import Integral, Real
from operator import attrgetter
from types import NoneType
from typing import Any
from uuid import UUID

from trident.errors import EmittedValueError, described
from trident.tuples.field_types import Parts, ddl_of, ddl_type, parts

_SORTS: dict[str, type] = {
    **dict.fromkeys(("long", "int", "short", "byte"), int),
    **dict.fromkeys(("double", "float"), float),
    **dict.fromkeys(("string", "char", "varchar"), str),
    **{"boolean": bool, "binary": bytes},
}
_TYPES: dict[str, type] = {
    **_SORTS,
    **{"date": date, "timestamp": datetime, "timestamp_ntz": datetime, "decimal": Decimal},
    **{"array": list, "map": dict, "struct": dict},
}
LIMITS = {"long": 2**63, "int": 2**31, "short": 2**15, "byte": 2**7}
"""What integers of each type are below; its negative is the least."""
_LOOKED_AT = ("decimal", "float", "timestamp", "timestamp_ntz", "array", "map", "struct")
"""Types to which not every value of their Python type belongs, or not in its one form."""
_ZONES = {
    "timestamp": "give it its time zone, as datetime.now(UTC) has, or declare timestamp_ntz",
    "timestamp_ntz": "leave out its time zone, by value.replace(tzinfo=None), or declare timestamp",
}
"""What to do about a datetime with no time zone, or one too many."""
_MOST_DIGITS = 38
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_EXACT = Context(prec=80, traps=[Inexact, InvalidOperation])
_ZONE = attrgetter("tzinfo")


class _MisfitError(Exception):
    """A value that doesn't belong to its type."""


@cache
def python_type(kind: str) -> type | None:
    """The Python type of the values of a Spark type; None where they are left to Spark.

    Examples
    --------
    >>> python_type("varchar(9)"), python_type("array<long>"), python_type("void")
    (<class 'str'>, <class 'list'>, None)
    """
    return _TYPES.get(parts(kind).head)


def sure_types(kind: str) -> frozenset[type]:
    """The Python types of values that need no closer look; of integers their size matters too.

    Examples
    --------
    >>> sure_types("long"), sure_types("decimal(4,2)")
    (frozenset({<class 'int'>}), frozenset())
    """
    wanted = python_type(kind)
    if wanted is None or parts(kind).head in _LOOKED_AT:
        return frozenset()
    return frozenset({int}) if wanted is int else frozenset({wanted, NoneType})


@cache
def value_sort(kind: str) -> object:
    """What values of a type are compared as: their Python type, or the type's name.

    Equal values of one sort are one key, whatever their types: 1 is the same as long and as int.

    Examples
    --------
    >>> value_sort("long") is value_sort("int"), value_sort("decimal(4,2)"), value_sort("char(9)")
    (True, 'decimal', <class 'str'>)
    >>> value_sort("struct<a:int,b:date>") == value_sort("struct<b:date,a:long>")
    True
    """
    head, kinds, names = parts(kind)
    if not kinds:
        return _SORTS.get(head, head)
    if names:
        return head, frozenset(zip(names, map(value_sort, kinds), strict=True))
    return head, *map(value_sort, kinds)


@cache
def common_type(kinds: tuple[str | None, ...]) -> str | None:
    """The type of a field in which values of several types meet, which are one `value_sort`.

    It is the wider one; of structs, the first one's order of fields. None where a type isn't known,
    or no decimal has the digits of all of them.

    Examples
    --------
    >>> common_type(("int", "long")), common_type(("decimal(9,4)", "decimal(10,2)"))
    ('long', 'decimal(12,4)')
    >>> common_type(("struct<a:int,b:date>", "struct<b:date,a:long>"))
    'struct<a:long,b:date>'
    """
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    if len(set(known)) == 1:
        return known[0]
    (head, within, names), *_ = found = [parts(kind) for kind in known]
    if head == "decimal":
        digits = [(precision, -unit.adjusted()) for precision, unit in map(_digits, known)]
        scale = max(scale for _, scale in digits)
        precision = max(precision - scale for precision, scale in digits) + scale
        return f"decimal({precision},{scale})" if precision <= _MOST_DIGITS else None
    if head in LIMITS:
        return max(known, key=LIMITS.__getitem__)
    if not within:
        return "double" if head in ("double", "float") else "string"
    inner = [
        [each.kinds[each.names.index(name)] for name in names] if names else each.kinds
        for each in found
    ]
    made = tuple(common_type(column) for column in zip(*inner, strict=True))
    known_made = tuple(kind for kind in made if kind is not None)
    return ddl_of(Parts(head, known_made, names)) if len(known_made) == len(made) else None


def kind_of(values: Sequence[Any]) -> str | None:
    """The type of a column that has these values; None where no type has all of them.

    Examples
    --------
    >>> kind_of([1, None, 2.5]), kind_of([{"a": 1}, {"b": ["x"]}]), kind_of([1, "x"])
    ('double', 'struct<a:long,b:array<string>>', None)
    """
    found = set(map(type, values)) - {NoneType}
    if found == {int, float}:
        return "double"
    if len(found) != 1:
        return None
    some = [value for value in values if value is not None]
    if found == {list}:
        within = kind_of([*chain.from_iterable(some)])
        return within and f"array<{within}>"
    if found == {dict}:
        names = tuple(dict.fromkeys(chain.from_iterable(some)))
        kinds = [kind_of([value.get(name) for value in some]) for name in names]
        known = tuple(kind for kind in kinds if kind is not None)
        is_struct = names and len(known) == len(names) and set(map(type, names)) == {str}
        return ddl_of(Parts("struct", known, names)) if is_struct else None
    if found == {datetime}:
        zoned = {value.tzinfo is not None for value in some}
        return None if len(zoned) > 1 else "timestamp" if True in zoned else "timestamp_ntz"
    if found == {int} and not _in_range("long", some, found):
        return None
    [kind] = found
    return ddl_type(kind) if kind in (UUID, *_TYPES.values()) else None


def can_be_key(kind: str) -> bool:
    """Whether values of a type can be compared and stored as keys: all but maps.

    Examples
    --------
    >>> can_be_key("array<date>"), can_be_key("struct<a:map<string,long>>")
    (True, False)
    """
    head, kinds, _ = parts(kind)
    return head != "map" and all(map(can_be_key, kinds))


def decimal_of_sum(kind: str) -> str:
    """The type of the sum of decimals, as Spark has it.

    Examples
    --------
    >>> decimal_of_sum("decimal(10,2)"), decimal_of_sum("decimal(38,18)")
    ('decimal(20,2)', 'decimal(38,18)')
    """
    precision, unit = _digits(kind)
    return f"decimal({min(precision + 10, 38)},{-unit.adjusted()})"


def conform(operation: str, field: str, kind: str, values: Sequence[Any]) -> Sequence[Any]:
    """Check a column that a step made against its declared type, and convert what differs in form.

    Null fits every type. A whole number becomes a float where one is declared, so that its key is
    the same however it was written, and a float has no more bits than its type; a decimal gets the
    digits after the point that are declared; a moment is in UTC; a UUID becomes its text; an array
    is a list and a struct a dict with its fields in order. Numbers of other libraries become
    Python's, and subclasses plain ones. Nothing else is converted: a float given for an integer
    would lose its fraction in silence, and a moment without a zone gets none.

    It looks at each distinct type only where all fit.

    A whole number of more bits than its type has is refused, like a value of another one.

    Examples
    --------
    >>> conform("f", "x", "double", [1, 2.5, None])
    [1.0, 2.5, None]
    >>> conform("f", "n", "long", [1, 2.5])
    Traceback (most recent call last):
    ...
    trident.errors.EmittedValueError: f emitted float 2.5 for the field 'n', which is declared
    long: emit that type, or declare another
    """
    try:
        return _conform(kind, values)
    except _MisfitError:
        wrong = next(value for value in values if not fits(kind, value))
        raise misfit(operation, field, kind, wrong) from None


def fits(kind: str, value: object) -> bool:
    """Whether a field of the type, one that has a `python_type`, can have the value."""
    try:
        _conform(kind, (value,))
    except _MisfitError:
        return False
    return True


def misfit(operation: str, field: str, kind: str, value: object) -> EmittedValueError:
    """The error for a value that a field of the type can't have."""
    advice = "emit that type, or declare another"
    if isinstance(value, datetime) and kind in _ZONES:
        advice = _ZONES[kind]
    problem = f"emitted {described(value)} for the field {field!r}, which is declared {kind}"
    return EmittedValueError(operation, f"{problem}: {advice}")


def _conform(kind: str, values: Sequence[Any]) -> Sequence[Any]:
    """The column in the form of its type; the same object if it has that form."""
    head, kinds, names = parts(kind)
    wanted = python_type(kind)
    assert wanted is not None
    if head == "array":
        return _arrays(kinds[0], values)
    if head == "map":
        return _maps(kinds[0], kinds[1], values)
    if head == "struct":
        return _structs(kinds, names, values)
    found = set(map(type, values))
    if found <= {wanted, NoneType} and _has_form(kind, head, values, found):
        return values
    made = []
    for value in values:
        right = None if value is None else _convert(kind, head, wanted, value)
        if right is None is not value:
            raise _MisfitError
        made.append(right)
    return made


def _has_form(kind: str, head: str, values: Sequence[Any], found: Set[type]) -> bool:
    """Whether values of the right types are in the one form of their type."""
    if head in LIMITS:
        return _in_range(head, values, found)
    if head == "decimal":
        return _have_digits(kind, [value for value in values if value is not None])
    if head == "timestamp":
        return {id(UTC)}.issuperset(map(id, map(_ZONE, filter(None, values))))
    if head == "timestamp_ntz":
        some = list(filter(None, values))
        return {None}.issuperset(map(_ZONE, some)) and not any(moment.fold for moment in some)
    return head not in _LOOKED_AT


def _convert(kind: str, head: str, wanted: type, value: Any) -> Any:
    """A value, not null, converted to the type; None where it can't be."""
    if wanted is Decimal:
        return _decimal(kind, value)
    if wanted is datetime:
        return _moment(value, zoned=head == "timestamp")
    if type(value) is bool:
        return value if wanted is bool else None
    if wanted is int:
        right = int(value) if isinstance(value, Integral) else None
        return right if right is not None and _in_range(head, (right,), {int}) else None
    if wanted is float and isinstance(value, Real):
        return _float(value, bits=32 if head == "float" else 64)
    if wanted is str:
        if type(value) is UUID:
            return str(value)
        return "".join((value,)) if isinstance(value, str) else None  # plain, whatever its class
    if wanted is bytes:
        return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None
    if wanted is date and isinstance(value, date) and not isinstance(value, datetime):
        return date(value.year, value.month, value.day)
    return None


def _float(value: Real, *, bits: int) -> float | None:
    try:
        wide = float(value)
    except OverflowError:  # an integer
        return None
    return array("f", (wide,))[0] if bits == 32 else wide


def _moment(value: Any, *, zoned: bool) -> datetime | None:
    """The moment in UTC, or unchanged without a zone; None if the zone is not as declared."""
    if not isinstance(value, datetime) or (value.utcoffset() is not None) is not zoned:
        return None
    try:
        plain = datetime.combine(value.date(), value.timetz())
        return plain.astimezone(UTC) if zoned else plain.replace(tzinfo=None, fold=0)
    except (OverflowError, ValueError):
        return None


def _arrays(kind: str, values: Sequence[Any]) -> Sequence[Any]:
    if not set(map(type, values)) <= {list, NoneType}:
        values = [_as_list(value) for value in values]
    flat = list(chain.from_iterable(filter(None, values)))
    right = _conform(kind, flat)
    if right is flat:
        return values
    pending = iter(right)
    return [value and list(islice(pending, len(value))) for value in values]


def _as_list(value: Any) -> list[Any] | None:
    if value is None or isinstance(value, list | tuple):
        return None if value is None else list(value)
    raise _MisfitError


def _maps(key: str, item: str, values: Sequence[Any]) -> Sequence[Any]:
    if not set(map(type, values)) <= {dict, NoneType}:
        raise _MisfitError
    some = list(filter(None, values))
    keys, items = [*chain.from_iterable(some)], [*chain.from_iterable(map(dict.values, some))]
    right_keys, right_items = _conform(key, keys), _conform(item, items)
    if None in keys:
        raise _MisfitError
    if right_keys is keys and right_items is items:
        return values
    pending = zip(right_keys, right_items, strict=True)
    return [value and dict(islice(pending, len(value))) for value in values]


def _structs(kinds: Sequence[str], names: tuple[str, ...], values: Sequence[Any]) -> Sequence[Any]:
    if not set(map(type, values)) <= {dict, NoneType}:
        values = [_as_dict(names, value) for value in values]
    some = [value for value in values if value is not None]
    shapes = set(map(tuple, some))
    if not all(set(shape) <= set(names) for shape in shapes):
        raise _MisfitError
    columns = [[value.get(name) for value in some] for name in names]
    right = [_conform(kind, column) for kind, column in zip(kinds, columns, strict=True)]
    if shapes <= {names} and all(new is old for new, old in zip(right, columns, strict=True)):
        return values
    pending = _dicts(names, right, len(some))
    return [None if value is None else next(pending) for value in values]


def _dicts(
    names: Sequence[str], columns: Sequence[Sequence[Any]], count: int
) -> Iterator[dict[str, Any]]:
    rows = zip(*columns, strict=True) if columns else repeat((), count)
    return (dict(zip(names, row, strict=True)) for row in rows)


def _as_dict(names: Sequence[str], value: Any) -> dict[str, Any] | None:
    """A struct by the names of its fields: a `NamedTuple` or `Row` has them, a tuple the order."""
    if value is None or type(value) is dict:
        return value
    named = getattr(value, "_asdict", None) or getattr(value, "asDict", None)
    if named is not None and isinstance(value, tuple):
        return dict(named())
    if not isinstance(value, tuple) or len(value) != len(names):
        raise _MisfitError
    return dict(zip(names, value, strict=True))


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


def _have_digits(kind: str, values: Sequence[Decimal]) -> bool:
    """Whether decimals have the declared digits after the point, and no more before it."""
    precision, unit = _digits(kind)
    if not all(map(unit.same_quantum, values)):
        return False
    limit = unit.scaleb(precision)
    signed = any(value.is_signed() for value in values if not value)  # zero has no sign
    return not values or (-limit < min(values) and max(values) < limit and not signed)


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
