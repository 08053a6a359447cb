"""All that a server answers for the objects that it serves, whatever the protocol."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from starlette.routing import BaseRoute

from trident.drpc.calls import CallQueue
from trident.drpc.errors import DRPCUsageError
from trident.drpc.queued_service import TIMEOUT, QueuedService
from trident.drpc.service import LocalDRPC
from trident.figures.run_figures import ServerFigures
from trident.job.explain import explain
from trident.job.plan_dict import to_dict
from trident.plan.plan import Plan
from trident.server.access import Access
from trident.server.functions import Functions, Service, service_of
from trident.server.health import Health
from trident.server.limits import DRPCLimits
from trident.server.routes.drpc import drpc_routes
from trident.server.routes.figures import figures_routes
from trident.server.routes.page import page_routes
from trident.server.routes.states import state_routes
from trident.state_service.served_states import served_states
from trident.state_service.service import StateService

_RESERVED = frozenset(
    "api drpc events figures.json healthz metrics openapi.json page plan.json state states".split()
)


class Serving:
    """What is served: functions, states, figures and a page, and the routes to them.

    A run has its queries. For a topology they are compiled, and its states opened for reading.
    `others` answer the functions that no object has. Raises DRPCUsageError for an object that can't
    be served, and leaves nothing open.
    """

    def __init__(self, served: Any, access: Access, limits: DRPCLimits, *others: Service) -> None:
        services: list[Service] = []
        states: list[StateService] = []
        runs: list[Any] = []
        self._owned: list[QueuedService] = []
        with ExitStack() as undo:
            for each in served if isinstance(served, list | tuple) else [served]:
                runs_here = True
                if hasattr(each, "newDRPCStream"):  # a topology, which imports this
                    runs_here = each.isActive
                    _check(each.plan(), runs_here=runs_here)
                    each = LocalDRPC(each.plan(), on_spark=_on_spark)
                    undo.callback(each.close)
                    self._owned.append(each)
                services.append(service_of(each))
                if services[-1] is not each:
                    runs.append(each)
                plan = getattr(services[-1], "plan", None)
                _check_names(services[-1].functions)
                if isinstance(plan, Plan) and plan.states:
                    states.append(StateService(plan, runs_here=runs_here, most_keys=limits.keys))
            undo.pop_all()
        self._owned += states
        self.functions = Functions([*services, *others], access, limits)
        self.routes: list[BaseRoute] = [*drpc_routes(self.functions)]
        self.routes += state_routes(self.functions, states, self.routes)
        of_runs = [run.drpc for run in runs]
        local = [each for each in services if isinstance(each, LocalDRPC)]
        self.figures = ServerFigures(
            [run.figures for run in runs],
            [each.figures for each in local if each not in of_runs],
        )
        plans = [each.plan for each in local]
        self._health = Health(runs, plans)
        self.routes += figures_routes(self.figures, self._health, access)
        without_spark = [run.drpc for run in runs if not run.on_spark]
        drawn = [to_dict(each.plan, on_spark=each not in without_spark) for each in local]
        explained = [explain(each.plan, on_spark=each not in without_spark) for each in local]
        routes, self._page = page_routes(access, drawn, explained, self.figures.figures)
        self.routes += routes

    def close(self, drain: float = TIMEOUT) -> None:
        """Close the states that were opened here, after `drain` seconds for answers at most."""
        self._page.close()
        for service in self._owned:
            service.close(drain)
        self._health.close()


def _on_spark(*query: Any) -> CallQueue:
    from trident.spark.job_queue import JobQueue  # pyspark is optional

    return JobQueue(*query)


def _check_names(functions: Iterable[str]) -> None:
    """Refuse a function with the name of a page, or of something else in ``allow=``."""
    for name in functions:
        if name in _RESERVED or name.startswith("state/"):
            what = "DRPCServer: this is the name of a page of the server's own, and of no function:"
            raise DRPCUsageError(what, name, (), "Give the function another name.")


def _check(plan: Plan, *, runs_here: bool) -> None:
    """Refuse a topology that can't be served here."""
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
    if plan.drpc or plan.updating:
        return
    states = served_states(plan, runs_here=runs_here)
    if all(state.left_out for state in states.values()):
        reasons = [f"{name} can't be read: {state.left_out}" for name, state in states.items()]
        what = "; ".join(["DRPCServer: the topology has no queries and no state to show", *reasons])
        raise DRPCUsageError(what, "", (), "Declare a query with newDRPCStream().")
