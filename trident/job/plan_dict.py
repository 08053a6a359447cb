"""The plan as JSON values, for drawings, and for programs of others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from trident.job.shown import ShownJob, shown_job
from trident.plan.guarantee import guarantee
from trident.plan.nodes import StateNode
from trident.plan.places import calls_of, place_of
from trident.plan.plan import BatchGroup, DRPCQuery, Part, Plan


def to_dict(plan: Plan, *, on_spark: bool = True) -> dict[str, Any]:
    """The declared steps, and the jobs that run them, as JSON values.

    Ids are numbers in the order of creation: the same program gives the same ones.

    Parameters
    ----------
    plan : Plan
        The topology.
    on_spark : bool
        Whether a session may run it; not if it was started without one.

    Returns
    -------
    dict
        Of lists. ``groups``: id, clock (``"spout"``, ``"dataframe"`` or ``"requests"``), stages.
        ``queries``: function, the fields that it answers, engine (``"local"`` or ``"spark"``),
        stages. A stage is one of the job that runs; if a group has a job for each engine, of the
        one on Spark. It has its number, how many partitions it runs in (None if the session
        decides), the numbers of the stages that its tuples come from, how they come in (empty if
        they begin there), whether its first step is also done in each partition before that, and
        the ids of its nodes. ``nodes``: id, name (the call), text (the call with its arguments),
        fields, parents by id, its group or its query, stage, the name of the state that it updates
        or reads, and the line that declared it. ``states``: id, name, the group that
        updates it (None for a static one), label, map (how it keeps values), hosted (``"driver"``
        or ``"executor"``), guarantee with why and advice (None for a static one), store (its kind,
        host, database and prefix; never a user or a password; None if nothing is known), and the
        calls that a batch costs (least and most of a task, and of a batch; None likewise).
    """
    groups = [(group, shown_job(group, on_spark=on_spark)) for group in plan.groups]
    queries = [(query, shown_job(query, on_spark=on_spark)) for query in plan.drpc.values()]
    parts: list[tuple[Part, ShownJob]] = [*groups, *queries]
    return {
        "groups": [
            {"id": group.id, "clock": _clock(group), "stages": _stages(shown)}
            for group, shown in groups
        ],
        "queries": [
            {
                "function": query.function,
                "answers": list(query.result.fields),
                "engine": query.source.engine,
                "stages": _stages(shown),
            }
            for query, shown in queries
        ],
        "nodes": [each for part, shown in parts for each in _nodes(part, shown)],
        "states": [state_dict(plan, node) for node in plan.states],
    }


def _clock(group: BatchGroup) -> str:
    return "requests" if group.requests else group.clock


def _stages(shown: ShownJob) -> list[dict[str, Any]]:
    return [
        {
            "number": stage.id + 1,
            "partitions": shown.partitions(stage),
            "inputs": [number + 1 for number in stage.inputs],
            "exchange": stage.exchange.text,
            "combined": stage.combines_first,
            "nodes": [node.id for node in shown.nodes[stage.id]],
        }
        for stage in shown.job.stages
    ]


def _nodes(part: Part, shown: ShownJob) -> Iterable[dict[str, Any]]:
    stage_of = {node: id + 1 for id, nodes in shown.nodes.items() for node in nodes}
    for node in part.nodes:
        yield {
            "id": node.id,
            "name": node.origin.call,
            "text": node.call_text,
            "fields": [{"name": name, "type": kind} for name, kind in node.fields.types.items()],
            "parents": [parent.id for parent in node.parents],
            "group": part.id if isinstance(part, BatchGroup) else None,
            "query": part.function if isinstance(part, DRPCQuery) else None,
            "stage": stage_of[node],
            "updates": node.updates.name if node.updates is not None else None,
            "reads": node.asks.state.name if node.asks is not None else None,
            "declared": str(node.origin),
        }


def state_dict(plan: Plan, node: StateNode) -> dict[str, Any]:
    """The facts of a state, as JSON values; see `to_dict`."""
    factory = node.state.factory
    group, update = plan.group_of(node), plan.update_of(node.state)
    found = guarantee(plan, update) if update is not None else None
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
