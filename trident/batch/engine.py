"""The base class of both engines, which run the batches of a plan's groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from trident.batch.group_run import GroupRun
from trident.batch.loop import SpoutLoop
from trident.batch.runner import BatchRunner
from trident.batch.start_options import Trigger
from trident.batch.work import GroupEngine
from trident.log.checkpoint import Place, local_folder
from trident.log.folders import Folder
from trident.operations.annotations import identified
from trident.plan.nodes import StateNode
from trident.plan.plan import BatchGroup
from trident.states.state import State

E = TypeVar("E", bound=GroupEngine)


class Engine(ABC, Generic[E]):
    """An engine, made for one plan.

    Its constructor raises an error if it can't run the plan, before anything is opened. `session`
    runs the queries that Spark answers; None if the engine has none.
    """

    session: Any = None

    @abstractmethod
    def open(self, group: BatchGroup, states: Mapping[StateNode, State]) -> E:
        """Prepare the engine of a group; the states are closed with it."""

    def reads(self, group: BatchGroup) -> Mapping[str, str]:
        """Return the paths that each stream of files reads, by its id; the log refuses a start with
        others."""
        return {}

    def source_of(self, source: object) -> str:
        """Return the class of a stream's source, by which the log tells it from others."""
        return identified(source)

    def folder(self, place: Place) -> Folder:
        """Return the folder at a path or URL; raise CheckpointError for an unknown file system."""
        return local_folder(place)

    def pending(self, group: BatchGroup, most: int) -> int:
        """Return how many of a group's batches may be emitted and not committed, up to `most`."""
        return 1

    def clock(
        self,
        group: BatchGroup,
        opened: E,
        runner: BatchRunner,
        folder: Folder | None,
        trigger: Trigger,
        max_pending: int,
    ) -> GroupRun:
        """Return the clock of the group, not started yet: by default our own loop.

        The clock closes `opened` at its end. `folder`, not made yet, is for Structured Streaming's
        own log and staged batches; None for a group of spouts.
        """
        spouts = {source.stream_id: source.source for source in group.sources}
        return SpoutLoop(
            *(spouts, opened, runner),
            trigger=trigger,
            max_pending=max_pending,
            idle_times=group.idle_times,
        )
