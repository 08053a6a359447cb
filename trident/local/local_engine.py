"""The local engine: what a topology is started on without a session."""

from __future__ import annotations

from collections.abc import Mapping

from trident.batch.engine import Engine
from trident.job.compile import Local, compile_job
from trident.local.group_engine import LocalGroupEngine
from trident.plan.nodes import StateNode
from trident.plan.overlap import one_at_a_time
from trident.plan.plan import BatchGroup, Plan
from trident.states.state import State


class LocalEngine(Engine[LocalGroupEngine]):
    """Runs every group in this process, in a thread of its own."""

    def __init__(self, plan: Plan) -> None:
        self._jobs = {
            group.id: compile_job(group, Local()) for group in plan.groups if group.requests is None
        }

    def pending(self, group: BatchGroup, most: int) -> int:
        return most if one_at_a_time(group) is None else 1

    def open(self, group: BatchGroup, states: Mapping[StateNode, State]) -> LocalGroupEngine:
        return LocalGroupEngine(group, self._jobs[group.id], states)
