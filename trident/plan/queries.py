"""Whether a query can be asked of a state, as far as that is known before it runs."""

from __future__ import annotations

import typing
from typing import Any

from trident.errors import OperationTypeError
from trident.fields import Fields
from trident.operations import QueryFunction
from trident.plan.nodes import StateUpdateNode, StaticStateNode
from trident.rows import operation_name
from trident.state_updaters import (
    CombinerAggStateUpdater,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    ReducerAggStateUpdater,
)
from trident.states.state import State, StateFactory

_MAPS = (MapCombinerAggStateUpdater, MapReducerAggStateUpdater)
_SINGLES = (CombinerAggStateUpdater, ReducerAggStateUpdater)


def check_queryable(
    call: str,
    function: QueryFunction[Any, Any],
    inputs: Fields,
    state: StateUpdateNode | StaticStateNode,
) -> None:
    """The state offers what the query asks, and a key has as many fields as the state's."""
    asked, name = function.queries, operation_name(function)
    if asked is None:
        return
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


def made_state(factory: StateFactory) -> type[State] | None:
    """The class a factory makes, where its annotation says more than ``State``.

    What it makes may be a subclass, so that it may well be able to list its tuples.
    """
    try:
        made = typing.get_type_hints(type(factory).makeState).get("return")
    except (NameError, TypeError):  # written as text that has no meaning here
        return None
    return made if isinstance(made, type) and made is not State else None
