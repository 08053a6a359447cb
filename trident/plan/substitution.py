"""A plan with other sources and states in place of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import Any

from trident.errors import PlanError, TridentError
from trident.plan.nodes import Node, SourceNode, StateDeclaration, StateUpdateNode
from trident.plan.plan import Plan
from trident.spouts.interfaces import ITridentDataSource
from trident.states.maps.factory import MapStateFactory
from trident.states.state import StateFactory

_logger = logging.getLogger("trident")


def substituted(
    nodes: Iterable[Node],
    source: Callable[[SourceNode], Mapping[str, Any]],
    state: Callable[[StateDeclaration], StateDeclaration],
) -> dict[Node, Node]:
    """Return a copy of each node, with other sources and states.

    `source` gives what is another one in a stream's beginning.
    """
    copies: dict[Node, Node] = {}

    def other(value: Any) -> Any:
        if isinstance(value, Node):
            return copies[value]
        if isinstance(value, tuple):
            return tuple(map(other, value))
        return state(value) if isinstance(value, StateDeclaration) else value

    for node in nodes:
        parts = {each.name: getattr(node, each.name) for each in fields(node)}
        changed = {name: other(value) for name, value in parts.items()}
        if isinstance(node, SourceNode):
            changed |= source(node)
        copies[node] = replace(node, **changed)
    return copies


def located(plan: Plan) -> Plan:
    """Return the plan with the states that it updates where they are now.

    Each may have another one in its place, which was built anew. The stores are asked; what is
    wrong there is found, and told, by whoever opens the state.
    """
    moved: dict[str, StateFactory] = {}
    for node in plan.updates:
        name, factory = node.state.name, node.state.factory
        if not isinstance(factory, MapStateFactory):
            continue
        with suppress(TridentError):
            found = factory.located()
            if found is not factory:
                moved[name] = found
                prefix = found.identity[2]
                _logger.info("state %r was built anew: it has the prefix %r", name, prefix)
    return replace(plan, nodes=_with_states(plan.nodes, moved)) if moved else plan


def rebuilt(
    plan: Plan, prefixes: Mapping[str, str], since: str | None = None
) -> tuple[Plan, list[tuple[MapStateFactory, str]]]:
    """Return the plan that builds some states anew beside the old ones, and which those are.

    `prefixes` are the new ones, by the name of the state; all states that share batches are built
    together. The plan has only their group, whose sources begin at `since`; None leaves that to
    each source.
    """
    known = [node.state.name for node in plan.updates]
    for name in prefixes:
        if name not in known:
            raise PlanError("rebuild: the topology updates no state", name, known)
    groups = [each for each in plan.groups if any(_named(each.updates).keys() & prefixes.keys())]
    if len(plan.groups) > 1 or groups[0].requests is not None:
        what = "rebuild: the topology has more than one group of streams, or functions that update:"
        advice = (
            "A checkpoint has the logs of all groups of its topology, and this one would lack "
            "those. Give a topology that declares the streams of one group only."
        )
        raise PlanError(what, ", ".join(group.id for group in plan.groups), (), advice)
    [group] = groups
    factories = _named(group.updates)
    if left := sorted(factories.keys() - prefixes.keys()):
        advice = "One log commits them together: give each a --state and a --to."
        raise PlanError("rebuild: in the same batches is updated", left[0], (), advice)
    swaps = []
    moved: dict[str, StateFactory] = {}
    for name, prefix in prefixes.items():
        factory = factories[name]
        if not isinstance(factory, MapStateFactory) or factory.written_by == "storm":
            what = "rebuild: no other state can take the place of"
            raise PlanError(what, f"{name}, {factory.label}", (), "Take a map over a store.")
        moved[name] = factory.at(prefix)
        if moved[name].identity == factory.identity:
            raise PlanError(f"rebuild: {name} has that prefix:", prefix, (), "Take another one.")
        swaps.append((factory, prefix))
    nodes = [node for node in plan.nodes if node in {*group.nodes, *group.states}]
    copies = _with_states(nodes, moved, partial(_history, since=since))
    return replace(plan, nodes=copies), swaps


def _named(updates: Iterable[StateUpdateNode]) -> dict[str, StateFactory]:
    return {node.state.name: node.state.factory for node in updates}


def _as_they_are(_: SourceNode) -> Mapping[str, Any]:
    return {}


def _with_states(
    nodes: Iterable[Node],
    factories: Mapping[str, StateFactory],
    source: Callable[[SourceNode], Mapping[str, Any]] = _as_they_are,
) -> tuple[Node, ...]:
    def state(declared: StateDeclaration) -> StateDeclaration:
        return replace(declared, factory=factories.get(declared.name, declared.factory))

    return tuple(substituted(nodes, source, state).values())


def _history(node: SourceNode, since: str | None) -> Mapping[str, Any]:
    if isinstance(node.source, ITridentDataSource):
        return {"source": node.source.from_history(since)}
    if since is not None:
        advice = "Leave --from out, and give the DataFrame the option, as startingOffsets."
        raise PlanError("rebuild: where a DataFrame begins is said by", node.stream_id, (), advice)
    return {}
