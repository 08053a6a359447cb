"""The figures of a run and of what a server serves, as JSON values; see `docs/monitoring.md`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from time import time
from typing import Any, Protocol

from trident.batch.lag import Lag
from trident.batch.monitor import Monitor
from trident.batch.progress import BatchProgress
from trident.shared_call import SharedCall

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


LIMIT = 2.0
"""Seconds in which the figures have to be there."""


class Figured(Protocol):
    """A run, as `trident.api.run.Run` is one."""

    def figures(self) -> dict[str, Any]:
        """Return its figures."""


class Answering(Protocol):
    """What answers queries, as `LocalDRPC` does."""

    def figures(self) -> list[dict[str, Any]]:
        """Return the figures of its functions."""


class ServerFigures:
    """What a server can tell of; made once a server, asked by any thread.

    `services` answer for topologies that run elsewhere.
    """

    def __init__(self, runs: Iterable[Figured], services: Iterable[Answering]) -> None:
        self._runs = tuple(runs)
        self._services = tuple(services)
        self._since = iso(time())
        self._asked = SharedCall(self.figures, fresh=0.0)

    async def asked(self) -> dict[str, Any]:
        """Return the figures, without blocking the event loop: Spark is asked for some of them.

        Those who ask at the same time are told the same. Raises TimeoutError after two seconds.
        """
        return await self._asked.within(LIMIT)

    def figures(self) -> dict[str, Any]:
        """Return the figures as JSON values, of the shape that ``Run.figures()`` returns.

        Without a run in this process the status is ``"elsewhere"``, and there are no groups. Of
        several runs each group says by ``run``, from 1, to which it belongs.
        """
        told = [run.figures() for run in self._runs]
        functions = [query for each in told for query in each["queries"]]
        functions += [query for service in self._services for query in service.figures()]
        first: dict[str, Any] = {}
        for query in functions:  # where two have a function of one name, the first answers
            first.setdefault(query["function"], query)
        return {
            "status": _status([each["status"] for each in told]),
            "since": min((each["since"] for each in told), default=self._since),
            "groups": [
                {"run": number, **group} if len(told) > 1 else group
                for number, each in enumerate(told, 1)
                for group in each["groups"]
            ],
            "queries": list(first.values()),
        }


def _status(runs: Sequence[str]) -> str:
    for status in ("failed", "running", "stopped"):
        if status in runs:
            return status
    return "elsewhere"
