"""Reads the arguments of fluent calls: fields, and operations or plain callables in their place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from trident.errors import OperationTypeError, PlanError, described
from trident.operations.callables import (
    Adapted,
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

_MISSING = object()
_FIELDS = Fields, str, list, tuple

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


class Given(NamedTuple):
    """What a fluent call was given: input fields, an operation, output fields; None for none."""

    inputs: Fields | None
    operation: Any
    outputs: Fields | None


def take_first(
    call: str, names: Sequence[str], arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[list[Any], tuple[Any, ...], dict[str, Any]]:
    """Take the first arguments, by position or name; return them and the remaining ones."""
    left, left_named, taken = list(arguments), dict(named), []
    for name in names:
        if name in left_named:
            taken.append(left_named.pop(name))
        elif left:
            taken.append(left.pop(0))
        else:
            raise OperationTypeError(f"{call}: takes {', '.join(names)} first; missing is", name)
    return taken, tuple(left), left_named


def read_arguments(
    call: str,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    operation: str,
    *,
    outputs: bool = True,
) -> Given:
    """Read ``([inputs,] operation, outputs)``: by position in Storm's order, or by name."""
    known = ["inputs", operation, "outputs"] if outputs else ["inputs", operation]
    _check_names(call, named, known)
    left = list(arguments)
    inputs, given, made = (named.get(name, _MISSING) for name in ("inputs", operation, "outputs"))
    first = len(left) > (given is _MISSING) and isinstance(left[0], _FIELDS)
    if inputs is _MISSING and first:
        inputs = left.pop(0)
    if given is _MISSING and left:
        given = left.pop(0)
    if made is _MISSING and left and outputs:
        made = left.pop(0)
    if inputs is _MISSING and left and len(arguments) == 3:
        what = f"{call}: the fields that are read come first: {call}(inputs, operation, outputs)"
        raise OperationTypeError(f"{what}; found in their place", _shown(arguments[0]))
    if given is _MISSING or left:
        what = f"{call}: takes {f'[inputs,] {operation}, outputs' if outputs else 'an operation'}"
        raise OperationTypeError(f"{what}; found", f"{len(arguments) + len(named)} arguments")
    return Given(_fields(inputs), given, _fields(made))


def read_inputs(call: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Fields | None:
    """Read ``([inputs])``; None without any."""
    _check_names(call, named, ["inputs"])
    if len(arguments) + len(named) > 1 or not all(isinstance(one, _FIELDS) for one in arguments):
        what = f"{call}: with Rows it takes the fields that are written, and nothing else; found"
        found = _shown(arguments[-1]) if arguments else "several"
        raise OperationTypeError(what, found, (), "Leave the updater out.")
    return _fields(next(iter([*arguments, *named.values()]), None))


def read_each(arguments: Sequence[Any], named: Mapping[str, Any]) -> Given:
    """Read what ``each`` takes: a function, which has outputs, or a filter, which has none."""
    filters = "filter" in named and "function" not in named
    given = read_arguments("each", arguments, named, "filter" if filters else "function")
    if filters and given.outputs is not None:
        advice = "A filter makes no fields: leave out outputs=, or pass function=."
        what = "each: a filter has no output fields, found"
        raise OperationTypeError(what, str(given.outputs), (), advice)
    if "function" in named and given.outputs is None:
        advice = "Name the output fields with outputs=, or pass a filter as filter=."
        raise OperationTypeError("each: no output fields for", _shown(given.operation), (), advice)
    return given


def read_join(
    arguments: Sequence[Any], named: Mapping[str, Any], pairs: bool
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Read what ``join`` takes, in pairs or lists: streams, their keys, and what follows these."""
    first = ["one", "oneFields", "other", "otherFields"] if pairs else ["streams", "fields"]
    last = ["outputs", "type", "mode"]
    _check_names("join", named, [*first, *last])
    left, taken = list(arguments), {}
    for name in first:
        if name in named or left:
            taken[name] = named[name] if name in named else left.pop(0)
    if pairs:
        streams: Any = [taken[name] for name in ("one", "other") if name in taken]
        keys: Any = [taken[name] for name in ("oneFields", "otherFields") if name in taken]
    else:
        streams, keys = taken.get("streams", ()), taken.get("fields", ())
    return streams, keys, (*left, *(named[name] for name in last if name in named))


def read_multi_reduce(
    arguments: Sequence[Any], named: Mapping[str, Any], advice: str
) -> tuple[list[Any], Any, Any]:
    """Read what ``multiReduce`` takes: streams, with their fields or without, then a reducer and
    the output fields."""
    first = ["fields", "streams", "oneFields", "one", "otherFields", "other"]
    _check_names("multiReduce", named, [*first, "reducer", "outputs"])
    left = list(arguments)
    last = [
        named[name] if name in named else left.pop() if left else _MISSING
        for name in ("outputs", "reducer")
    ]
    given = [*left, *(named[name] for name in first if name in named)]
    if _MISSING in last or not given:
        what = "multiReduce: takes streams, a reducer and output fields; found"
        raise OperationTypeError(what, f"{len(arguments) + len(named)} arguments", (), advice)
    outputs, reducer = last
    return given, reducer, outputs


def _check_names(call: str, named: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse an argument by a name that the call doesn't take."""
    for name in named:
        if name not in known:
            raise PlanError(f"{call}: there is no argument", name, known)


def _fields(given: Any) -> Fields | None:
    return None if given is None or given is _MISSING else Fields.of(given)


_TAKEN: Mapping[type[Adapted], tuple[tuple[type[Any], ...], str]] = {
    CallableFunction: ((Function, Native), "a function"),
    CallableColumn: ((CallableColumn, Native), "a function"),
    CallableFilter: ((Filter, Native), "a filter"),
    CallableMap: ((MapFunction,), "a function"),
    CallableFlatMap: ((FlatMapFunction, Vectorised), "a function"),
    CallableConsumer: ((Consumer,), "a consumer"),
}
"""What a call takes that makes this of a plain callable, and what it is called in errors."""


def as_operation(call: str, given: object, adapter: type[Adapted], inputs: Fields) -> Any:
    """An operation, as it is given or made of a plain callable, which takes the input fields."""
    kinds, due = _TAKEN[adapter]
    if adapter is CallableFilter and isinstance(given, Function):
        advice = "Name the output fields of the function as the last argument."
        raise OperationTypeError(f"{call}: no output fields for", _shown(given), (), advice)
    made: Any = given
    if not isinstance(given, kinds):
        if isinstance(given, Operation | Native) or not callable(given) or _lacks_instance(given):
            raise _mistaken(call, given, due, plain=True)
        made = adapter(given)
    if isinstance(made, Adapted):
        check_arity(call, made.function, inputs)
    elif isinstance(made, PlainFunction):
        check_arity(call, made.expand, inputs)
    return made


def as_instance(call: str, given: object, *kinds: type[Any]) -> Any:
    """Return what is an instance of one of these classes; a plain callable is refused."""
    if isinstance(given, kinds):
        return given
    due = " or ".join(kind.__name__ for kind in kinds)
    raise _mistaken(call, given, f"a {due}", plain=False)


def check_arity(call: str, function: Callable[..., Any], inputs: Fields) -> None:
    """Refuse a plain callable that can't take one argument for each input field."""
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
