"""Makes nodes of the calls for windows: an exchange, an update of a state, and its new values."""

from __future__ import annotations

from typing import Any

from trident.errors import OperationTypeError, PlanError, described
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    ReducerAggregator,
)
from trident.operations.window_updaters import CountWindowUpdater, WindowUpdater
from trident.operations.windows import (
    BaseWindow,
    CountWindow,
    DurationLike,
    SlidingCountWindow,
    SlidingDurationWindow,
    TumblingCountWindow,
    TumblingDurationWindow,
)
from trident.plan.arguments import as_instance, split_arguments
from trident.plan.builder import Builder
from trident.plan.nodes import NewValuesNode, Node, PartitionNode, StateDeclaration, StateUpdateNode
from trident.plan.step_checks import check_aggregate_shape, check_new_fields, check_selection
from trident.states.maps import MapStateFactory
from trident.states.values import StateType
from trident.tuples.fields import Fields

CALL = "window"


def tumbling(length: int | DurationLike) -> BaseWindow:
    """The window of ``tumblingWindow(length, …)``."""
    if isinstance(length, int):
        return TumblingCountWindow.of(length)
    return TumblingDurationWindow.of(length)


def sliding(length: int | DurationLike, slide: int | DurationLike) -> BaseWindow:
    """The window of ``slidingWindow(length, slide, …)``."""
    if isinstance(length, int) and isinstance(slide, int):
        return SlidingCountWindow.of(length, slide)
    if isinstance(length, int) or isinstance(slide, int):
        what = "slidingWindow: length and slide are both numbers of tuples, or both times; found"
        raise OperationTypeError(what, f"{length!r} and {slide!r}")
    return SlidingDurationWindow.of(length, slide)


def window(
    builder: Builder,
    parent: Node,
    group: Fields | None,
    config: object,
    store: object,
    arguments: tuple[Any, ...],
    name: str | None,
) -> NewValuesNode:
    """``window(config, store, [inputs,] aggregator, outputs)``."""
    if not isinstance(config, BaseWindow):
        what = f"{CALL}: expected a window, found"
        advice = "Write TumblingCountWindow.of(100), or another of the windows."
        raise OperationTypeError(what, described(config), (), advice)
    inputs, given, outputs = split_arguments(CALL, arguments, most=2)
    inputs, outputs, key = inputs or Fields(), outputs or Fields(), group or Fields()
    aggregator = as_instance(CALL, given, CombinerAggregator, ReducerAggregator, Aggregator)
    before = parent.fields
    check_selection(CALL, inputs, before)
    check_aggregate_shape(CALL, aggregator, inputs, outputs)
    check_new_fields(CALL, outputs, key)
    declaration = builder.state(CALL, store, name, outputs)
    _check_opaque(declaration)
    made = outputs.with_types(aggregator.infer_types(before.select(inputs)))
    updater = _updater(config, key, before.select(inputs), aggregator, len(outputs))
    with builder.together():
        moved = builder.add(
            PartitionNode, parent=parent, how="partitionBy" if group else "global", by=group
        )
        update = builder.add(
            StateUpdateNode,
            parent=moved,
            state=declaration,
            inputs=key + [each for each in inputs if each not in key],
            updater=updater,
            outputs=before.select(key) + made,
            group=group,
        )
        return builder.add(NewValuesNode, parent=update)


def _updater(
    config: BaseWindow, key: Fields, inputs: Fields, aggregator: Any, width: int
) -> WindowUpdater:
    assert isinstance(config, CountWindow)
    return CountWindowUpdater(config, key, inputs, aggregator, width)


def _check_opaque(state: StateDeclaration) -> None:
    """Open windows are computed from what the batch before has left: only an opaque map can tell
    that when a batch is replayed."""
    factory = state.factory
    if isinstance(factory, MapStateFactory) and factory.kind is StateType.OPAQUE:
        return
    kind = factory.kind.value if factory.kind else "no map"
    what = f"{CALL}: open windows are kept in an opaque map, found {factory.label},"
    raise PlanError(what, kind, (), "Use opaque(…) of its backend, or mode=opaque in the URL.")
