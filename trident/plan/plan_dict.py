"""The plan as JSON values, of which drawings are made, and programs of others read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from trident.plan.guarantee import guarantee
from trident.plan.nodes import Node, StateNode, StateQueryNode, StateUpdateNode
from trident.plan.places import calls_of, place_of
from trident.plan.plan import BatchGroup, Plan
from trident.plan.stages import PlanStage, combines_first, exchange, stages


def to_dict(plan: Plan) -> dict[str, Any]:
    """What has been declared, as JSON values.

    Ids are numbers in the order of creation: the same program gives the same ones.

    Parameters
    ----------
    plan : Plan
        The topology.

    Returns
    -------
    dict
        Of lists. ``groups``: id, clock (``"spout"``, ``"dataframe"`` or ``"requests"``), stages.
        ``queries``: function, the fields that it answers, engine (``"local"`` or
        ``"spark"``), stages. A stage has its number, how many
        partitions it runs in (None where the engine chooses), how tuples come in (empty where they
        begin there), and the ids of its nodes. ``nodes``: id, name (the call), text (the call with
        its arguments), fields, parents by id, the group or the query that it is of, stage, how
        tuples come in, whether they are combined in each partition first, which state it updates or
        reads, by name, and the line that declared it. ``states``: id, name, the group that updates
        it (None for a static one), label, map (how it keeps values), hosted (``"driver"`` or
        ``"executor"``), guarantee with why and advice (None for a static one), store (its kind,
        host, database and prefix; never a user or a password; None where nothing is known), and the
        calls that a batch costs (least and most of a task, and of a batch; None likewise).
    """
    return {
        "groups": [
            {"id": group.id, "clock": _clock(group), "stages": _stages(stages(group.nodes))}
            for group in plan.groups
        ],
        "queries": [
            {
                "function": query.function,
                "answers": list(query.result.fields),
                "engine": query.source.engine,
                "stages": _stages(stages(query.nodes)),
            }
            for query in plan.drpc.values()
        ],
        "nodes": [
            *(each for group in plan.groups for each in _nodes(group.nodes, group=group.id)),
            *(
                each
                for query in plan.drpc.values()
                for each in _nodes(query.nodes, query=query.function)
            ),
        ],
        "states": [_state(plan, node) for node in plan.states],
    }


def _clock(group: BatchGroup) -> str:
    return "requests" if group.requests else group.clock


def _stages(found: Iterable[PlanStage]) -> list[dict[str, Any]]:
    return [
        {
            "number": stage.number,
            "partitions": stage.partitions,
            "exchange": stage.exchange,
            "nodes": [node.id for node in stage.nodes],
        }
        for stage in found
    ]


def _nodes(
    nodes: tuple[Node, ...], group: str | None = None, query: str | None = None
) -> Iterable[dict[str, Any]]:
    stage_of = {node: stage.number for stage in stages(nodes) for node in stage.nodes}
    for node in nodes:
        yield {
            "id": node.id,
            "name": node.origin.call,
            "text": node.call_text,
            "fields": [{"name": name, "type": kind} for name, kind in node.fields.types.items()],
            "parents": [parent.id for parent in node.parents],
            "group": group,
            "query": query,
            "stage": stage_of[node],
            "exchange": exchange(node),
            "combined": combines_first(node),
            "updates": node.state.name if isinstance(node, StateUpdateNode) else None,
            "reads": node.state.state.name if isinstance(node, StateQueryNode) else None,
            "declared": str(node.origin),
        }


def _state(plan: Plan, node: StateNode) -> dict[str, Any]:
    factory = node.state.factory
    group = plan.group_of(node)
    found = guarantee(plan, node) if isinstance(node, StateUpdateNode) else None
    place, calls = place_of(factory), calls_of(factory)
    return {
        "id": node.id,
        "name": node.state.name,
        "group": group.id if group else None,
        "label": factory.label,
        "map": factory.kind.value if factory.kind else None,
        "hosted": factory.hosted,
        "guarantee": found.level if found else None,
        "why": found.why if found else None,
        "advice": found.advice if found else None,
        "store": asdict(place) if place else None,
        "calls": {"task": list(calls.a_task), "batch": list(calls.a_batch)} if calls else None,
    }
