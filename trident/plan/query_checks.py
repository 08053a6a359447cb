"""Checks that a state can answer a query or take an update, as far as is known before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from trident.errors import FieldError, OperationTypeError
from trident.operations.annotations import returned_class
from trident.operations.builtin import MapGet
from trident.operations.interfaces import QueryFunction, StateUpdater, operation_name
from trident.operations.state_updaters import (
    CombinerAggStateUpdater,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    ReducerAggStateUpdater,
    WindowTableUpdater,
)
from trident.plan.nodes import (
    DRPCNode,
    Node,
    StateDeclaration,
    StateNode,
    StateQueryNode,
    StateUpdateNode,
)
from trident.plan.plan import ancestors
from trident.states.backing_map import Ability, abilities_of
from trident.states.map_state import ITupleCollection
from trident.states.state import State, StateFactory
from trident.tuples.fields import Fields
from trident.tuples.value_types import value_sort

_MAPS = (MapCombinerAggStateUpdater, MapReducerAggStateUpdater)
_LISTS = (
    "Look up keys with MapGet(), or keep the state in a store that lists: in memory, in SQLite, or "
    "in one Redis server under a prefix."
)
_SINGLES = (CombinerAggStateUpdater, ReducerAggStateUpdater)
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


def check_queryable(
    call: str, function: QueryFunction[Any, Any], stream: Node, inputs: Fields, state: StateNode
) -> None:
    """Refuse a query without the method it calls, or whose key has other fields or types."""
    asked, name = function.queries, operation_name(function)
    if asked is None:
        return
    kind = state.state.factory.map_type
    if asked == "getTuples" and kind is not None and Ability.LIST not in abilities_of(kind):
        what = f"{call}: {name} needs a state that can list; {state.state.name!r} is kept in a"
        raise OperationTypeError(what, kind.__name__, (), _LISTS)
    made = made_state(state.state.factory)
    if made is not None and asked != "getTuples" and not hasattr(made, asked):
        what = f"{call}: {name} needs a state with {asked}(); {state.state.name!r} is a"
        raise OperationTypeError(what, made.__name__)
    updater = state.updater if isinstance(state, StateUpdateNode) else None
    if asked == "multiGet" and isinstance(updater, _SINGLES):
        what = f"{call}: {name} looks up keys, but one ungrouped value is all there is in state"
        raise OperationTypeError(what, state.state.name, (), "Use SnapshotGet().")
    if asked == "get" and isinstance(updater, _MAPS):
        what = f"{call}: {name} reads one ungrouped value, but there is one for each group in state"
        raise OperationTypeError(what, state.state.name, (), "Use MapGet() with the key's fields.")
    if asked == "multiGet" and isinstance(updater, _MAPS) and len(inputs) != len(updater.group):
        what = f"{call}: the key of state {state.state.name!r} is ({updater.group}), found"
        advice = f"Name {len(updater.group)} input field(s), one for each of the key's."
        raise OperationTypeError(what, f"({inputs})", (), advice)
    as_it_is = type(function).batchRetrieve is MapGet.batchRetrieve  # others may convert the key
    if as_it_is and isinstance(state, StateUpdateNode) and state.group:
        key = state.parent.fields.select(state.group)
        _check_key_types(call, stream, inputs, state.state.name, key)


def _check_key_types(call: str, stream: Node, inputs: Fields, state: str, key: Fields) -> None:
    """Refuse a key of other types than the state's: keys are compared with their types, so that
    such a key would never be found."""
    asked = stream.fields.select(inputs)
    pairs = zip(asked.types.items(), key.types.items(), strict=True)
    for position, ((name, found), (field, wanted)) in enumerate(pairs, 1):
        if found is None or wanted is None or value_sort(found) == value_sort(wanted):
            continue
        which = f"field {position} of the key" if len(key) > 1 else "the key"
        what = (
            f"{call}: {which} of state {state!r} is of type {wanted} ({field!r}), which "
            f"never equals a value of type {found}, as in the field"
        )
        raise FieldError(what, name, (), _converted(stream, inputs, name, field, wanted))


def _converted(stream: Node, inputs: Fields, name: str, field: str, wanted: str) -> str:
    """How to query with a key of the state's type."""
    made = new_name(stream.fields, field)
    makers = [before for before in ancestors(stream) if name in before.makes]
    # The arguments of a query are text, never null; what steps make of them may be.
    nullable = not all(isinstance(maker, DRPCNode) for maker in makers)
    call = conversion(stream.fields, name, made, wanted, nullable=nullable)
    if not call:
        return f"Convert it to {wanted} first, in each() or map()."
    names = ", ".join(made if one == name else one for one in inputs)
    return f'Convert it first, {call}, and query with "{names}".'


def check_made(query: StateQueryNode) -> None:
    """At start: refuse a query that its state can't answer, if its class was not known before."""
    declared, asked = query.asks.state, query.function.queries
    factory = declared.factory
    known = factory.map_type if asked == "getTuples" else made_state(factory)
    if asked is None or known is not None:
        return
    with closing(factory.makeState({}, None, 0, 1)) as made:
        cannot_list = isinstance(made, ITupleCollection) and not made.lists
        if not hasattr(made, asked) or (asked == "getTuples" and cannot_list):
            function = operation_name(query.function)
            what = f"start: at {query.origin}, {function} needs a state with {asked}(), "
            found = f"found {type(made).__name__}"
            advice = _LISTS if asked == "getTuples" else "Use the query that fits the state."
            raise OperationTypeError(f"{what}{found} in state", declared.name, (), advice)


def check_updatable(
    call: str, updater: StateUpdater[Any], declared: StateDeclaration, made: object = None
) -> None:
    """Refuse an update of a map's entries if the state, or else its class, is not a map."""
    found = made_state(declared.factory) if made is None else made
    if found is None or not isinstance(updater, (*_MAPS, WindowTableUpdater)):
        return
    for method in ("multiGet", "multiUpdate", "multiPut"):
        if not hasattr(found, method):
            name = (found if isinstance(found, type) else type(found)).__name__
            what = (
                f"{call}: one value is kept for each key, which takes a map state with {method}(); "
                f"state {declared.name!r} is a"
            )
            advice = "Keep it in a map state, or write to it by partitionPersist()."
            raise OperationTypeError(what, name, (), advice)


def check_made_updatable(update: StateUpdateNode) -> None:
    """At start: the same for a state whose class is known only when it is made."""
    declared = update.state
    needs = isinstance(update.updater, (*_MAPS, WindowTableUpdater))
    if not needs or made_state(declared.factory) is not None:
        return
    with closing(declared.factory.makeState({}, None, 0, 1)) as made:
        check_updatable(f"start: at {update.origin}", update.updater, declared, made)


def made_state(factory: StateFactory) -> type[State] | None:
    """The class of state that ``makeState`` is annotated to return; None where that is `State`."""
    return returned_class(type(factory).makeState, State)


def conversion(stream: Fields, name: str, made: str, kind: str, *, nullable: bool) -> str:
    """The call that appends a field's value as another type, `made`; empty where none is
    obvious."""
    wanted = value_sort(kind)
    expression = _EXPRESSIONS.get((value_sort(stream.types[name] or ""), wanted))
    if expression is None:
        return ""
    value = f"None if v is None else {expression}" if nullable else expression
    kind = "string" if wanted is str else kind
    return f'.each({_written(name)}, lambda v: [{value}], "{made} {kind}")'


def new_name(stream: Fields, name: str) -> str:
    """A name for a new field: `name` itself if the stream has no such field."""
    name = name if name.isidentifier() else "key"
    names = (f"{name}_{number}" if number > 1 else name for number in range(1, len(stream) + 2))
    return next(free for free in names if free not in stream)


def _written(name: str) -> str:
    """A field as an argument; a name with a space in it can't be written as one string."""
    return f'"{name}"' if name.isidentifier() else f"Fields.typed([({name!r}, None)])"
