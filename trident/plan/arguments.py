"""Reads the arguments of fluent calls: fields, and operations or plain callables in their place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from trident.errors import OperationTypeError, described
from trident.operations.callables import (
    CallableColumn,
    CallableConsumer,
    CallableFilter,
    CallableFlatMap,
    CallableFunction,
    CallableMap,
    Native,
)
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    Consumer,
    CustomStreamGrouping,
    Filter,
    FlatMapFunction,
    Function,
    GroupedMultiReducer,
    MapFunction,
    MultiReducer,
    Operation,
    PlainFunction,
    QueryFunction,
    ReducerAggregator,
    StateUpdater,
    operation_name,
)
from trident.operations.vectorised import Vectorised
from trident.tuples.fields import Fields

_PLACES: tuple[tuple[type[Operation], str], ...] = (
    (Function, "each(inputs, function, outputs)"),
    (Filter, "each(inputs, filter) or filter(filter)"),
    (MapFunction, "map(function)"),
    (FlatMapFunction, "flatMap(function)"),
    (Vectorised, "flatMap(vectorised(function), outputs)"),
    (Consumer, "peek(consumer)"),
    (CombinerAggregator, "aggregate or persistentAggregate"),
    (ReducerAggregator, "aggregate or persistentAggregate"),
    (Aggregator, "aggregate or partitionAggregate"),
    (CustomStreamGrouping, "partition(grouping)"),
    (MultiReducer, "multiReduce"),
    (GroupedMultiReducer, "multiReduce of groups"),
    (StateUpdater, "partitionPersist"),
    (QueryFunction, "stateQuery"),
)


def split_arguments(
    call: str, arguments: Sequence[Any], most: int
) -> tuple[Fields | None, Any, Fields | None]:
    """Take arguments apart, which are ``([inputs,] operation [, outputs])``: Storm's order.

    Returns
    -------
    tuple
        The input fields or None, what was given for the operation, the output fields or None.
    """
    given = list(arguments)
    inputs = None
    if len(given) > 1 and isinstance(given[0], Fields | str | list | tuple):
        inputs = Fields.of(given.pop(0))
    if inputs is None and len(given) == 3 and most == 2:
        what = f"{call}: the fields that are read come first: {call}(inputs, operation, outputs)"
        raise OperationTypeError(f"{what}; found in their place", _shown(given[0]))
    if not given or len(given) > most:
        what = f"{call}: takes {'[inputs,] operation, outputs' if most > 1 else 'an operation'}"
        raise OperationTypeError(f"{what}; found", f"{len(arguments)} arguments")
    operation = given.pop(0)
    return inputs, operation, Fields.of(given[0]) if given else None


def as_function(call: str, given: object, inputs: Fields) -> Function | Native:
    """What ``each`` with output fields takes."""
    if isinstance(given, Native):
        return given
    function: Function = _adapted(call, given, Function, "a function", CallableFunction)
    target = function.function if isinstance(function, CallableFunction) else function
    if isinstance(target, PlainFunction):
        check_arity(call, target.expand, inputs)
    elif not isinstance(target, Function):
        check_arity(call, target, inputs)
    return function


def as_column(call: str, given: object, inputs: Fields) -> CallableColumn | Native:
    """What ``withColumn`` takes."""
    if isinstance(given, Native):
        return given
    column: CallableColumn = _adapted(call, given, CallableColumn, "a function", CallableColumn)
    check_arity(call, column.function, inputs)
    return column


def as_filter(call: str, given: object, inputs: Fields) -> Filter | Native:
    """What ``filter``, and ``each`` without output fields, takes."""
    if isinstance(given, Native):
        return given
    if isinstance(given, Function):
        advice = "Name the output fields of the function as the last argument."
        raise OperationTypeError(f"{call}: no output fields for", _shown(given), (), advice)
    filter: Filter = _adapted(call, given, Filter, "a filter", CallableFilter)
    if isinstance(filter, CallableFilter):
        check_arity(call, filter.function, inputs)
    return filter


def as_map(call: str, given: object, inputs: Fields, width: int) -> MapFunction:
    """What ``map`` takes."""
    function: MapFunction = _adapted(
        call, given, MapFunction, "a function", lambda plain: CallableMap(plain, width)
    )
    if isinstance(function, CallableMap):
        check_arity(call, function.function, inputs)
    return function


def as_flat_map(
    call: str, given: object, inputs: Fields, width: int
) -> FlatMapFunction | Vectorised:
    """What ``flatMap`` takes."""
    if isinstance(given, Vectorised):
        return given
    function: FlatMapFunction = _adapted(
        call, given, FlatMapFunction, "a function", lambda plain: CallableFlatMap(plain, width)
    )
    if isinstance(function, CallableFlatMap):
        check_arity(call, function.function, inputs)
    return function


def as_consumer(call: str, given: object, inputs: Fields) -> Consumer:
    """What ``peek`` takes."""
    consumer: Consumer = _adapted(call, given, Consumer, "a consumer", CallableConsumer)
    if isinstance(consumer, CallableConsumer):
        check_arity(call, consumer.function, inputs)
    return consumer


def as_instance(call: str, given: object, *kinds: type[Any]) -> Any:
    """What has to be an instance of one of these classes: no plain callable can stand for it."""
    if isinstance(given, kinds):
        return given
    due = " or ".join(kind.__name__ for kind in kinds)
    raise _mistaken(call, given, f"a {due}", plain=False)


def check_arity(call: str, function: Callable[..., Any], inputs: Fields) -> None:
    """A plain callable takes one argument for each input field."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions don't tell
        return
    try:
        signature.bind(*inputs)
    except TypeError:
        name = getattr(function, "__qualname__", type(function).__name__)
        name = name.rpartition("<locals>.")[2]
        what = f"{call}: {name}{signature} can't take the {len(inputs)} input fields"
        advice = "It is called with one argument for each input field."
        raise OperationTypeError(what, str(inputs) or "none", (), advice) from None


def _shown(given: object) -> str:
    return operation_name(given) if isinstance(given, Operation) else described(given)


def _adapted(
    call: str, given: object, kind: type[Any], due: str, adapt: Callable[[Callable[..., Any]], Any]
) -> Any:
    if isinstance(given, kind):
        return given
    if isinstance(given, Operation | Native) or not callable(given) or _lacks_instance(given):
        raise _mistaken(call, given, due, plain=True)
    return adapt(given)


def _lacks_instance(given: object) -> bool:
    """Whether a class was given where its instance was meant; ``int`` and the like convert."""
    return isinstance(given, type) and (
        issubclass(given, Operation) or any("__call__" in vars(kind) for kind in given.__mro__)
    )


def _mistaken(call: str, given: object, due: str, *, plain: bool) -> OperationTypeError:
    what = f"{call}: expected {due}, found"
    if isinstance(given, type):
        advice = f"Pass an instance: {given.__name__}(…)."
        return OperationTypeError(what, f"the class {given.__name__}", (), advice)
    if isinstance(given, str):
        advice = "Pass the object itself"
        advice += f'; a Spark expression is written native("{given}").' if plain else "."
        return OperationTypeError(what, f"the string {given!r:.60}", (), advice)
    if isinstance(given, Native):
        advice = "Spark expressions go into each(native(…), outputs) or filter(native(…))."
        return OperationTypeError(what, given.label, (), advice)
    places = [place for kind, place in _PLACES if isinstance(given, kind)]
    if places:
        return OperationTypeError(what, _shown(given), (), f"It belongs into {places[0]}.")
    advice = "A plain callable will do." if plain else "Subclass it, or use a built-in one."
    return OperationTypeError(what, described(given), (), advice)
