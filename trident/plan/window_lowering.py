"""Makes nodes of the calls for windows: an exchange, an update of a state, and its new values."""

from __future__ import annotations

from functools import partial
from typing import Any

from trident.errors import OperationTypeError, PlanError, described
from trident.operations.callables import CallableFilter
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    ReducerAggregator,
    operation_name,
)
from trident.operations.state_updaters import WindowTableUpdater
from trident.plan.arguments import Given, as_instance
from trident.plan.builder import Builder, Position
from trident.plan.expiring import Expiring, expiry_of
from trident.plan.nodes import (
    FilterNode,
    NewValuesNode,
    PartitionNode,
    ProjectNode,
    StateDeclaration,
    StateQueryNode,
    StateUpdateNode,
)
from trident.plan.origins import watched_streams
from trident.plan.query_checks import check_updatable, new_name
from trident.plan.step_checks import check_aggregate, check_new_fields, check_selection
from trident.states.maps.factory import MapStateFactory
from trident.states.values import StateType
from trident.tuples.fields import Fields
from trident.windows.count_windows import CountWindowUpdater
from trident.windows.session_windows import SessionWindowUpdater
from trident.windows.time_windows import DurationWindowUpdater, IsLate, TimeWindowUpdater
from trident.windows.watermarks import check_time
from trident.windows.window_contents import WindowSchema
from trident.windows.window_updater import WindowUpdater
from trident.windows.windows import (
    BaseWindow,
    CountWindow,
    DurationLike,
    DurationWindow,
    SessionWindow,
    SlidingCountWindow,
    SlidingDurationWindow,
    TimeWindow,
    TumblingCountWindow,
    TumblingDurationWindow,
)

CALL = "window"
BOUNDS = Fields("windowStart", "windowEnd")
"""What is appended to a window by a time that tuples have."""


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
    at: Position, config: BaseWindow, store: object, given: Given, name: str | None
) -> NewValuesNode:
    """``window(config, store, [inputs,] aggregator, outputs)``."""
    builder, parent, group = at
    inputs, operation, outputs = given
    inputs, outputs, key = inputs or Fields(), outputs or Fields(), group or Fields()
    aggregator = as_instance(CALL, operation, CombinerAggregator, ReducerAggregator, Aggregator)
    before = at.fields
    types = check_aggregate(CALL, aggregator, before, group, inputs, outputs)
    times = _times(config, before)
    check_new_fields(CALL, BOUNDS if times else Fields(), key + outputs)
    streams = watched_streams(parent) if times else ()
    parts = {"aggregator": aggregator, "inputs": before.select(inputs), "width": len(outputs)}
    if isinstance(config, TimeWindow):
        parts |= {"kind": next(iter(times.types.values()), None), "streams": streams}
    updater = _updater(config, window=config, group=key, **parts)
    form = partial(WindowSchema, contents=updater.contents)
    declaration = builder.state(CALL, store, name, outputs, None, aggregator, form)
    _check_opaque(declaration)
    # The watermark is one, so windows by time are in one place, also those of groups.
    by_key = group is not None and isinstance(config, CountWindow)
    with builder.together():
        how = "partitionBy" if by_key else "global"
        moved = at.add(PartitionNode, how=how, by=group if by_key else None)
        update = builder.add(
            StateUpdateNode,
            parents=(moved,),
            state=declaration,
            inputs=Fields(*dict.fromkeys([*key, *inputs, *times])),
            updater=updater,
            outputs=before.select(key) + outputs.with_types(types) + _bounds(times),
            group=group,
        )
        return builder.add(NewValuesNode, parents=(update,))


def late_stream(builder: Builder, windowed: NewValuesNode) -> ProjectNode:
    """The tuples that came too late for the windows of ``window(…)``."""
    update, call = windowed.parent, "lateStream"
    updater = update.updater
    if not isinstance(updater, TimeWindowUpdater) or (field := updater.time_field) is None:
        what = f"{call}: no tuple is late for the window"
        advice = "Only windows by a field with times, withTimestampField(…), have late tuples."
        raise PlanError(what, str(getattr(updater, "window", "")), (), advice)
    stream = update.parent.parents[0]
    flag = Fields(new_name(stream.fields, "late"))
    with builder.together():
        asked = builder.add(
            StateQueryNode,
            parents=(stream,),
            asks=update,
            inputs=Fields(field),
            function=IsLate(updater),
            outputs=flag,
        )
        late = builder.add(FilterNode, parents=(asked,), inputs=flag, filter=CallableFilter(bool))
        return builder.add(ProjectNode, parents=(late,), keep=Fields(*stream.fields.names))


def window_table(
    builder: Builder,
    windowed: NewValuesNode,
    store: object,
    name: str | None,
    expire_after: DurationLike | None = None,
) -> StateUpdateNode:
    """``persistWindows(store)``."""
    call, updater = "persistWindows", windowed.parent.updater
    if not isinstance(updater, TimeWindowUpdater) or updater.time_field is None:
        what = f"{call}: a table needs windows by a field with times; these are"
        advice = "Call withTimestampField(…), or keep them with partitionPersist()."
        raise PlanError(what, str(getattr(updater, "window", "")), (), advice)
    if isinstance(updater.aggregator, Aggregator):
        what = f"{call}: a table keeps one value for each window, but any number is emitted by"
        advice = "Aggregate by a combiner or a reducer, or keep them with partitionPersist()."
        raise OperationTypeError(what, operation_name(updater.aggregator), (), advice)
    window = updater.window
    if isinstance(window, SessionWindow) and updater.lateness and not window.retracts:
        what = f"{call}: late tuples change sessions, and nothing takes back emitted ones of a"
        advice = "Call withRetractions() on the window."
        raise PlanError(what, str(window), (), advice)
    declaration = builder.state(call, store, name, Fields("windows"))
    table = WindowTableUpdater()
    check_updatable(call, table, declaration)
    end = None if expire_after is None else BOUNDS.names[1]
    return builder.add(
        StateUpdateNode,
        parents=(windowed,),
        state=declaration,
        inputs=Fields(*windowed.fields.names),
        updater=table,
        outputs=Fields(),
        expiry=expiry_of(call, Expiring(expire_after, end), declaration, windowed.fields),
    )


def _times(config: BaseWindow, before: Fields) -> Fields:
    """The field with times, with its type, if the window has one."""
    if not isinstance(config, TimeWindow) or config.field is None:
        return Fields()
    found = check_selection(CALL, Fields(config.field), before)
    check_time(CALL, config.field, found.types[config.field])
    return found


def _bounds(times: Fields) -> Fields:
    """The fields with the start and the end of a window, of the type of its times."""
    kinds = [kind or "long" for kind in times.types.values()]
    return BOUNDS.with_types(kinds * len(BOUNDS)) if kinds else Fields()


def _updater(config: BaseWindow, **parts: Any) -> WindowUpdater:
    match config:
        case CountWindow():
            return CountWindowUpdater(**parts)
        case DurationWindow():
            return DurationWindowUpdater(**parts)
        case SessionWindow():
            return SessionWindowUpdater(**parts)
    advice = "Write TumblingCountWindow.of(100), or another of the windows."
    raise OperationTypeError(f"{CALL}: expected a window, found", described(config), (), advice)


def _check_opaque(state: StateDeclaration) -> None:
    """Open windows are computed from what the batch before has stored. When a batch is replayed,
    only an opaque map still knows that."""
    factory = state.factory
    if isinstance(factory, MapStateFactory) and factory.kind is StateType.OPAQUE:
        if factory.max_keys:
            what = f"{CALL}: open windows are kept in a map that forgets nothing, found"
            raise PlanError(what, factory.label, (), "Use MemoryMapState.Factory().")
        return
    kind = factory.kind.value if factory.kind else "no map"
    what = f"{CALL}: open windows are kept in an opaque map, found {factory.label},"
    raise PlanError(what, kind, (), "Use opaque(…) of its backend, or kind=opaque in the URL.")
