"""What makes a single step meaningless; each check names the call, and the nearest right name."""

from __future__ import annotations

from trident.errors import FieldError, OperationTypeError, PlanError
from trident.fields import Fields
from trident.operations import Aggregator, CombinerAggregator, Operation
from trident.rows import operation_name


def check_selection(call: str, selected: Fields, available: Fields) -> None:
    """Every selected field is there."""
    for name in selected:
        if name not in available:
            raise FieldError(f"{call}: unknown field", name, available.names)


def check_new_fields(call: str, outputs: Fields, existing: Fields) -> None:
    """No output field is there already."""
    for name in outputs:
        if name in existing:
            advice = f"The stream has fields {existing}; give the new one another name."
            raise FieldError(f"{call}: there is already a field", name, (), advice)


def check_width(call: str, fields: Fields, first: Fields) -> None:
    """Merged streams have the same number of fields."""
    if len(fields) != len(first):
        what = f"{call}: streams of {len(first)} and {len(fields)} fields can't be merged"
        advice = f"The first has {first}, another {fields}; project() them to the same fields."
        raise FieldError(what, "", (), advice)


def check_names(call: str, names: Fields | None, fields: Fields) -> None:
    """There is a new name for each field, or none is given."""
    if names is not None and len(names) != len(fields):
        what = f"{call}: {len(names)} names for {len(fields)} fields"
        raise FieldError(what, str(names), (), f"The streams have {fields}; name each of them.")


def check_parallelism(call: str, parallelism: object) -> None:
    """A positive whole number."""
    if type(parallelism) is not int or parallelism < 1:
        raise PlanError(f"{call}: a number of partitions is 1 or more, found", repr(parallelism))


def check_aggregate_shape(
    call: str, aggregator: Operation, inputs: Fields, outputs: Fields
) -> None:
    """Combiners and reducers make one value, and some combiners take exactly so many."""
    name = operation_name(aggregator)
    if not isinstance(aggregator, Aggregator) and len(outputs) != 1:
        what = f"{call}: {name} makes one value, the output fields are"
        raise OperationTypeError(what, str(outputs) or "none", (), "Name one output field.")
    arity = aggregator.arity if isinstance(aggregator, CombinerAggregator) else None
    if arity is not None and len(inputs) != arity:
        what = f"{call}: {name} takes {arity} input field{'s' * (arity != 1)}, found"
        advice = f'Write {call}("field", {name}, "output").'
        raise OperationTypeError(what, str(inputs) or "none", (), advice)
