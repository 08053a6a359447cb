"""The figures of a run and of what a server serves, as JSON values; see `docs/monitoring.md`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from time import time
from typing import Any

from trident.batch.group_run import GroupRun
from trident.shared_call import SharedCall

LIMIT = 2.0
"""Seconds in which the figures have to be there."""
_RECENT = 20


def group_figures(group: GroupRun) -> dict[str, Any]:
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
    """Return the status of a run: ``"failed"`` where a group has, ``"running"`` while one does."""
    found = set(groups)
    if "failed" in found:
        return "failed"
    return "stopped" if stopped or (found and "running" not in found) else "running"


def iso(at: float) -> str:
    """Return seconds since 1970 as ISO 8601, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


class ServerFigures:
    """The figures of all that a server serves; made once a server, used by any thread.

    `runs` return the figures of its runs, `queries` those of functions whose topologies run
    elsewhere.
    """

    def __init__(
        self,
        runs: Iterable[Callable[[], dict[str, Any]]],
        queries: Iterable[Callable[[], list[dict[str, Any]]]],
    ) -> None:
        self._runs = tuple(runs)
        self._queries = tuple(queries)
        self._since = iso(time())
        self._shared = SharedCall(self.figures, fresh=0.0)

    async def read(self) -> dict[str, Any]:
        """Return the figures, without blocking the event loop: Spark is asked for some of them.

        Those who ask at the same time get the same. Raises TimeoutError after two seconds.
        """
        return await self._shared.within(LIMIT)

    def figures(self) -> dict[str, Any]:
        """Return the figures as JSON values, of the shape that ``Run.figures()`` returns.

        Without a run in this process the status is ``"elsewhere"``, and there are no groups. Of
        several runs each group says by ``run``, from 1, to which it belongs.
        """
        runs = [figures() for figures in self._runs]
        functions = [query for run in runs for query in run["queries"]]
        functions += [query for figures in self._queries for query in figures()]
        first: dict[str, Any] = {}
        for query in functions:  # where two have a function of one name, the first answers
            first.setdefault(query["function"], query)
        found = {run["status"] for run in runs}
        worst = (status for status in ("failed", "running", "stopped") if status in found)
        return {
            "status": next(worst, "elsewhere"),
            "since": min((run["since"] for run in runs), default=self._since),
            "groups": [
                {"run": number, **group} if len(runs) > 1 else group
                for number, run in enumerate(runs, 1)
                for group in run["groups"]
            ],
            "queries": list(first.values()),
        }
