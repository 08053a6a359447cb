"""The states of a plan, as clients see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trident.plan.guarantee import guarantee
from trident.plan.nodes import StateNode
from trident.plan.plan import Plan
from trident.states.maps.factory import MapStateFactory
from trident.states.state import StateFactory
from trident.states.values import StateType
from trident.tuples.fields import Fields
from trident.windows.window_updater import WindowUpdater


@dataclass(frozen=True)
class ServedState:
    """A state of a plan.

    `group` is None for a state that the topology only reads. `key` has no field for a single value,
    and is None if the plan doesn't know it. `left_out` says why it can't be read here.
    """

    name: str
    factory: StateFactory
    group: str | None
    key: Fields | None
    value: Fields | None
    guarantee: str
    why: str
    left_out: str

    @property
    def kind(self) -> str | None:
        """How its values are kept; None if that isn't known."""
        kind = self.factory.kind
        return None if kind is None else kind.value

    @property
    def cut(self) -> str:
        """The cut that it is read in: states of one cut show the same batch."""
        return f"state {self.name}" if self.group is None else f"group {self.group}"

    @property
    def whole(self) -> bool:
        """Whether readers see only whole committed batches."""
        of_storm = isinstance(self.factory, MapStateFactory) and self.factory.written_by == "storm"
        return self.factory.kind is StateType.OPAQUE and not of_storm


def served_states(plan: Plan, *, runs_here: bool) -> Mapping[str, ServedState]:
    """The states of a plan, by name.

    `runs_here` says whether its run is in this process, and so the states that it has in memory.
    """
    return {node.state.name: _served(plan, node, runs_here) for node in plan.states}


def _served(plan: Plan, node: StateNode, runs_here: bool) -> ServedState:
    group, name = plan.group_of(node), node.state.name
    key: Fields | None = None
    value: Fields | None = None
    level, why = "not known", "this topology only reads it"
    update = plan.update_of(node.state)
    if update is not None:
        found = guarantee(plan, update)
        level, why = found.level, found.why
        if update.group is not None or update.keeps_one_value:
            key = update.fields.select(update.group or Fields())
            value = Fields.typed(
                (field, kind) for field, kind in update.fields.types.items() if field not in key
            )
    return ServedState(
        name=name,
        factory=node.state.factory,
        group=None if group is None else group.id,
        key=key,
        value=value,
        guarantee=level,
        why=why,
        left_out=_left_out(
            node.state.factory,
            windows=update is not None and isinstance(update.updater, WindowUpdater),
            elsewhere=group is not None and not runs_here,
        ),
    )


def _left_out(factory: StateFactory, *, windows: bool, elsewhere: bool) -> str:
    if factory.opens is None:
        return f"{factory.label} keeps it, which is no map state of this library"
    if windows:
        return "it holds what windows have gathered, and no values"
    if elsewhere and factory.map_type is not None and not factory.map_type.lasts:
        return "it is in the memory of the run's process"
    return ""
