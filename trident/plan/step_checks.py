"""Checks of a step when it is declared; errors name the call and the nearest name that exists."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trident.errors import FieldError, OperationTypeError, PlanError
from trident.operations.interfaces import Aggregator, CombinerAggregator, Operation, operation_name
from trident.tuples.field_types import parts
from trident.tuples.fields import Fields
from trident.tuples.value_types import can_be_key, common_type, value_sort


def check_selection(call: str, selected: Fields, available: Fields) -> Fields:
    """Refuse a selected field that is missing; return the fields with their types."""
    for name in selected:
        if name not in available:
            raise FieldError(f"{call}: unknown field", name, available.names)
    return available.select(selected)


def check_new_fields(call: str, outputs: Fields, existing: Fields) -> None:
    """Refuse an output field that exists already."""
    for name in outputs:
        if name in existing:
            advice = f"The stream has fields {existing}; give the new one another name."
            raise FieldError(f"{call}: there is already a field", name, (), advice)


def check_keys(call: str, keys: Fields) -> None:
    """Refuse key fields whose type has no encoding: keys are compared and stored encoded."""
    for name, kind in keys.types.items():
        if kind is not None and not can_be_key(kind):
            what = f"{call}: a key can't be of type {kind}, found the field"
            advice = "Its entries have no order; convert it first, for example to an array."
            raise FieldError(what, name, (), advice)


def check_ordered(call: str, fields: Fields, advice: str) -> None:
    """Refuse to sort by fields without an order: by maps, structs, and arrays, which may have
    nulls."""
    for name, kind in fields.types.items():
        if kind is not None and parts(kind).kinds:
            what = f"{call}: values of type {kind} have no order, found the field"
            raise FieldError(what, name, (), advice)


def check_width(call: str, fields: Fields, first: Fields) -> None:
    """Refuse to merge streams with different numbers of fields."""
    if len(fields) != len(first):
        what = f"{call}: streams of {len(first)} and {len(fields)} fields can't be merged"
        advice = f"The first has {first}, another {fields}; project() them to the same fields."
        raise FieldError(what, "", (), advice)


def check_types_agree(call: str, streams: Sequence[Fields]) -> None:
    """Refuse to merge fields of different types, unless these hold the same Python values."""
    for columns in zip(*(fields.types.items() for fields in streams), strict=True):
        known = [(name, kind) for name, kind in columns if kind is not None]
        first, met = known[0] if known else ("", "")
        for name, kind in known[1:]:
            same_sort = value_sort(kind) == value_sort(met)
            common = common_type((met, kind)) if same_sort else None
            if common is None:
                what = f"{call}: {first!r} ({met}) and {name!r} ({kind}) can't be one field"
                advice = "Convert one of them first, in map() or each()."
                digits = "No decimal has the digits before and after the point of both. "
                raise FieldError(what, "", (), (digits if same_sort else "") + advice)
            met = common


def check_names(call: str, names: Fields | None, fields: Collection[str]) -> None:
    """Refuse names that are not one for each field; None is for no names."""
    if names is not None and len(names) != len(fields):
        what = f"{call}: {len(names)} names for {len(fields)} fields"
        advice = f"The streams have {', '.join(fields)}; name each of them."
        raise FieldError(what, str(names), (), advice)


def check_join_keys(call: str, keys: Sequence[Fields]) -> None:
    """Refuse keys of joined streams with different numbers of fields, or with none."""
    widths = {len(key) for key in keys}
    if len(widths) > 1 or 0 in widths:
        found = "; ".join(str(key) or "none" for key in keys)
        advice = "The first field of a stream's key is compared with the first of another's."
        what = f"{call}: expected as many key fields of each stream, found"
        raise PlanError(what, found, (), advice)


def check_parallelism(call: str, parallelism: object) -> None:
    """Refuse a number of partitions that is not a positive whole number."""
    if type(parallelism) is not int or parallelism < 1:
        raise PlanError(f"{call}: a number of partitions is 1 or more, found", repr(parallelism))


def check_on_error(call: str, on_error: str | None, allowed: Sequence[str], of_query: bool) -> None:
    """Refuse an unknown on_error=, and any other than "fail" for tuples of a request."""
    if on_error is not None and on_error not in allowed:
        raise PlanError(f"{call}: unknown on_error", str(on_error), allowed)
    if of_query and on_error not in (None, "fail"):
        what = f"{call}: a request has no on_error, found"
        advice = "Leave it out: a request that fails is answered by its error."
        raise PlanError(what, str(on_error), (), advice)


def check_aggregate(
    call: str,
    aggregator: Operation,
    before: Fields,
    group: Fields | None,
    inputs: Fields,
    outputs: Fields,
) -> Sequence[str | None]:
    """Check what an aggregator is given and makes, and return the types of its outputs.

    Combiners and reducers make one value; a combiner may fix the number of its input fields.
    """
    check_selection(call, group or Fields(), before)
    inputs = check_selection(call, inputs, before)
    name = operation_name(aggregator)
    if not isinstance(aggregator, Aggregator) and len(outputs) != 1:
        what = f"{call}: {name} makes one value, the output fields are"
        raise OperationTypeError(what, str(outputs) or "none", (), "Name one output field.")
    arity = aggregator.arity if isinstance(aggregator, CombinerAggregator) else None
    if arity is not None and len(inputs) != arity:
        what = f"{call}: {name} takes {arity} input field{'s' * (arity != 1)}, found"
        advice = f'Write {call}("field", {name}, "output").'
        raise OperationTypeError(what, str(inputs) or "none", (), advice)
    check_new_fields(call, outputs, group or Fields())
    return aggregator.infer_types(inputs)
