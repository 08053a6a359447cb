"""The services of what a server is given: a run has one, a topology gets one."""

from __future__ import annotations

from typing import Any

from trident.drpc.errors import DRPCUsageError
from trident.drpc.service import LocalDRPC
from trident.plan.plan import Plan


def opened(served: object) -> tuple[list[Any], list[LocalDRPC]]:
    """What is served, with a service in the place of each topology; and these services.

    Raises
    ------
    DRPCUsageError
        For a topology without queries, or with states that only the process of its run can see.
    """
    all_served: list[Any] = list(served) if isinstance(served, list | tuple) else [served]
    made: list[LocalDRPC] = []
    result: list[Any] = []
    for each in all_served:
        if hasattr(each, "newDRPCStream"):  # a topology, which imports this
            plan = each.plan()
            _check(plan, runs_here=each.runs)
            made.append(LocalDRPC(plan))
            result.append(made[-1])
        else:
            result.append(each)
    return result, made


def _check(plan: Plan, *, runs_here: bool) -> None:
    """Refuse a topology that can't be answered for here."""
    if not plan.drpc:
        what = "DRPCServer: the topology has no queries"
        raise DRPCUsageError(what, "", (), "Declare one with newDRPCStream().")
    for query in plan.drpc.values():
        for node in query.states:
            kind = node.state.factory.map_type
            elsewhere = plan.group_of(node) is not None and not runs_here
            if elsewhere and kind is not None and not kind.lasts:
                what = (
                    f"DRPCServer: {query.function!r} reads a state in the memory of the run's "
                    "process:"
                )
                advice = "Keep it in a store, such as 'sqlite:counts.db', or serve the run."
                raise DRPCUsageError(what, node.state.name, (), advice)
