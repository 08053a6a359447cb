"""The figures of a run, as JSON values; `docs/monitoring.md` tells what each means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from trident.batch.lag import Lag
from trident.batch.monitor import Monitor
from trident.batch.progress import BatchProgress

_RECENT = 20


class Group(Protocol):
    """A group of a run, as `trident.batch.group_run.GroupRun` is one."""

    group: str
    monitor: Monitor

    @property
    def status(self) -> str: ...
    @property
    def recentProgress(self) -> Sequence[BatchProgress]: ...
    def lag(self) -> Lag | None: ...


def group_figures(group: Group) -> dict[str, Any]:
    """Return the figures of one group."""
    recent = group.recentProgress  # Spark is asked for it, and tells more: so it comes first
    lag = group.lag()
    return {
        "group": group.group,
        "status": group.status,
        **group.monitor.figures(),
        "lag": None if lag is None else asdict(lag),
        "recent": [done.to_dict() for done in recent[-_RECENT:]],
    }


def run_status(groups: Iterable[str], stopped: bool) -> str:
    """Return the status of a run: ``"failed"`` where a group has, ``"running"`` while one does.

    Examples
    --------
    >>> run_status(["running", "failed"], False), run_status(["stopped", "running"], False)
    ('failed', 'running')
    """
    found = set(groups)
    if "failed" in found:
        return "failed"
    return "stopped" if stopped or (found and "running" not in found) else "running"
