"""A plan with other sources and states in place of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

from trident.errors import PlanError, TridentError
from trident.plan.nodes import Node, SourceNode, StateDeclaration
from trident.plan.plan import Plan
from trident.spouts.interfaces import ITridentDataSource
from trident.states.errors import StateUnavailableError
from trident.states.maps.factory import MapStateFactory
from trident.states.state import StateFactory

_logger = logging.getLogger("trident")
Swaps = list[tuple[MapStateFactory, str]]
"""Old states, each with the prefix of the new state that replaces it."""


def substitute(
    nodes: Iterable[Node],
    source: Callable[[SourceNode], Mapping[str, Any]],
    state: Callable[[StateDeclaration], StateDeclaration],
) -> dict[Node, Node]:
    """Return a copy of each node, with other sources and states.

    `source` gives the parts of a stream's beginning that change.
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


def locate_states(plan: Plan) -> Plan:
    """Return the plan with the states that it updates where they are now.

    A state may have been rebuilt in another place, which its store knows. Only a store that is away
    raises here; whoever opens the state raises any other error.
    """
    moved: dict[str, StateFactory] = {}
    for node in plan.updates:
        name, factory = node.state.name, node.state.factory
        if not isinstance(factory, MapStateFactory):
            continue
        try:
            found = factory.located()
        except StateUnavailableError:  # whoever opens it would wait for it as long once more
            raise
        except TridentError:
            continue
        if found is not factory:
            if found.kind is not factory.kind:
                what = f"{name} was built anew with {found.kind.value} values; declared is"
                advice = f"Declare it as it is now: kind={found.kind.value}."
                raise PlanError(what, factory.kind.value, (), advice)
            moved[name] = found
            prefix = found.identity[2]
            _logger.info("state %r was built anew: it has the prefix %r", name, prefix)
    return replace(plan, nodes=_with_states(plan.nodes, moved)) if moved else plan


def plan_rebuild(
    plan: Plan, prefixes: Mapping[str, str], since: str | None = None
) -> tuple[Plan, list[Swaps]]:
    """Return the plan that builds some states anew beside the old ones, and which those are.

    `prefixes` are the new ones, by the name of the state; all states that share batches are built
    together. The plan has only their groups, whose sources begin at `since`; None leaves that to
    each source. The old states, with the new prefixes, are given by group.
    """
    known = [node.state.name for node in plan.updates]
    for name in prefixes:
        if name not in known:
            raise PlanError("rebuild: the topology updates no state", name, known)
    swaps: list[Swaps] = []
    moved: dict[str, StateFactory] = {}
    nodes: set[Node] = set()
    for group in plan.groups:
        factories = {node.state.name: node.state.factory for node in group.updates}
        if factories.keys().isdisjoint(prefixes):
            continue
        if group.requests is not None:
            raise PlanError("rebuild: no source has the history of requests, found", group.id)
        if left := sorted(factories.keys() - prefixes.keys()):
            advice = "One log commits them together: give each a --state and a --to."
            raise PlanError("rebuild: the same batches also update", left[0], (), advice)
        swaps.append([_swap(plan, name, each, prefixes[name]) for name, each in factories.items()])
        moved |= {
            name: factory.at(prefix)
            for name, (factory, prefix) in zip(factories, swaps[-1], strict=True)
        }
        nodes.update(group.nodes, group.states)
    ordered = [node for node in plan.nodes if node in nodes]
    copies = _with_states(ordered, moved, partial(_begin_with_history, since=since))
    return replace(plan, nodes=copies), swaps


def check_free_prefix(plan: Plan, factory: MapStateFactory, prefix: str) -> None:
    """Refuse a prefix for a state if another state of the plan is kept there."""
    place = factory.at(prefix).identity
    for node in plan.states:
        if node.state.factory is not factory and node.state.factory.identity == place:
            what = f"the prefix {prefix!r} belongs to another state of the topology:"
            raise PlanError(what, node.state.name, (), "Take a prefix that no state has.")


def _swap(plan: Plan, name: str, factory: StateFactory, prefix: str) -> tuple[MapStateFactory, str]:
    if not isinstance(factory, MapStateFactory) or factory.written_by == "storm":
        what = "rebuild: a new state can't replace"
        raise PlanError(what, f"{name}, {factory.label}", (), "Take a map over a store.")
    if factory.at(prefix).identity == factory.identity:
        raise PlanError(f"rebuild: {name} already has the prefix", prefix, (), "Take another one.")
    check_free_prefix(plan, factory, prefix)
    return factory, prefix


def _keep_source(_: SourceNode) -> Mapping[str, Any]:
    return {}


def _with_states(
    nodes: Iterable[Node],
    factories: Mapping[str, StateFactory],
    source: Callable[[SourceNode], Mapping[str, Any]] = _keep_source,
) -> tuple[Node, ...]:
    def state(declared: StateDeclaration) -> StateDeclaration:
        return replace(declared, factory=factories.get(declared.name, declared.factory))

    return tuple(substitute(nodes, source, state).values())


def _begin_with_history(node: SourceNode, since: str | None) -> Mapping[str, Any]:
    if isinstance(node.source, ITridentDataSource):
        return {"source": node.source.from_history(since)}
    if since is not None:
        advice = "Leave --from out, and give the DataFrame the option, as startingOffsets."
        raise PlanError(
            "rebuild: --from is not for a DataFrame, found the stream", node.stream_id, (), advice
        )
    return {}
