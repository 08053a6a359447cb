"""A partitioned spout during one run: its coordinator here, its partitions read by the engine."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from trident.errors import SourceUnavailableError, SpoutPartitionError, described
from trident.operations.origins import origin_of
from trident.sources.emission import Assignment, Emission
from trident.sources.source import Opening, SourceBatch, StreamSource, has_own_ready
from trident.spouts.interfaces import check_derived
from trident.spouts.partitioned import (
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    ISpoutPartition,
    PartitionCoordinator,
    PartitionedSpout,
    PartitionEmitter,
)
from trident.states.values import Token

_logger = logging.getLogger("trident")


class PartitionedSource(StreamSource):
    """A spout over partitions: its coordinator is here, and the engine reads the partitions."""

    remembers = True

    def __init__(self, opening: Opening, spout: PartitionedSpout) -> None:
        self._coordinator = spout.getCoordinator(opening.conf, None)
        name = "IPartitionedTridentSpout.Coordinator"
        check_derived(self._coordinator, PartitionCoordinator, name, opening.stream)
        with ExitStack() as undo:
            undo.callback(self._coordinator.close)
            says_end = has_own_ready(self._coordinator)
            super().__init__(opening, spout, self._coordinator, says_end=says_end)
            self._opening = opening
            self._spout = spout
            self._again = spout.kind == "transactional"
            self._orders = self._emitter(spout)
            undo.callback(self._orders.close)
            self._away: set[str] = set()
            self.notifies = self._coordinator.whenReady(opening.listener)
            undo.pop_all()
        # A source that notifies is asked again at once, so an empty batch must use up its txid, or
        # the loop would spin.
        self.follows_metadata = not (says_end and self.notifies)

    def _emitter(self, spout: PartitionedSpout) -> PartitionEmitter:
        made = spout.getEmitter(self._opening.conf, None)
        for interface in (IPartitionedTridentSpout, IOpaquePartitionedTridentSpout):
            if isinstance(spout, interface):
                check_derived(made, interface.Emitter, f"{interface.__name__}.Emitter", self.stream)
        return made

    def held_back(self) -> int | None:
        return self._known(self._coordinator.held_back)

    def _emit(self, token: Token, metadata: Any, planned: Any) -> SourceBatch:
        known = {} if metadata is None else metadata
        if not isinstance(known, dict):
            raise SpoutPartitionError(
                self.stream,
                f"the log holds {described(metadata)} of it, which is not by partition",
                "Start the spout that it was begun with, or name the new one's stream anew.",
            )
        self._coordinator.follow(known)
        if planned is None:
            assignments = [
                Assignment(partition, known.get(name), again=False)
                for name, partition in self._partitions().items()
            ]
        else:
            assignments = self._planned(token, planned)
        emission = Emission(
            self.stream,
            self._spout,
            self.fields,
            self._opening.conf,
            self._opening.run,
            token,
            tuple(assignments),
        )
        tuples, emitted = self._opening.reader.read(emission)
        self._go_on_without({each.id: each.away for each in emitted if each.away is not None})
        said = {each.id: each.metadata for each in emitted if each.metadata is not None}
        for each in emitted:
            if each.tuples and each.metadata is None:
                problem = f"partition {each.id} emitted {each.tuples} tuples and returned None, "
                if isinstance(self._spout, IPartitionedTridentSpout):
                    problem += "so they can't be emitted again"
                    advice = "Return from emitPartitionBatchNew what emitPartitionBatch needs."
                else:
                    problem += "so the next batch would emit them again, for ever"
                    advice = "Return from emitPartitionBatch how far it came."
                raise SpoutPartitionError(self.stream, problem, advice)
        following = {**known, **said} or metadata
        self._coordinator.follow(following or {})
        ended = self._coordinator.ended(following or {})
        ids = [each.partition.getId() for each in assignments]
        active = [origin_of(self.stream, name) for name in ids if name not in ended]
        if not self._again or planned is not None:
            return SourceBatch(tuples, following, active=active)
        # A partition without tuples in the batch is not needed when the batch is emitted again.
        idle = {each.id for each in emitted if not each.tuples}
        plan = {
            name: own for name, own in said.items() if name not in idle or own != known.get(name)
        }
        return SourceBatch(tuples, following, plan, active)

    def _partitions(self) -> dict[str, ISpoutPartition]:
        ordered: Any = self._orders.getOrderedPartitions(self._coordinator.getPartitionsForBatch())
        if not isinstance(ordered, Sequence) or isinstance(ordered, str):
            problem = f"getOrderedPartitions returned {described(ordered)}"
            raise SpoutPartitionError(self.stream, problem, "Return a list of partitions.")
        found: dict[str, ISpoutPartition] = {}
        for partition in ordered:
            if not hasattr(partition, "getId"):
                problem = f"getOrderedPartitions lists {described(partition)}"
                advice = "Return objects that have a method getId()."
                raise SpoutPartitionError(self.stream, problem, advice)
            name: Any = partition.getId()
            if not isinstance(name, str):
                problem = f"the id of a partition is {name!r}"
                raise SpoutPartitionError(self.stream, problem, "Return a str from getId().")
            if name in found:
                problem = f"partition {name!r} is listed twice"
                advice = "Give each partition of getOrderedPartitions an id of its own."
                raise SpoutPartitionError(self.stream, problem, advice)
            found[name] = partition
        return found

    def _planned(self, token: Token, planned: Mapping[str, Any]) -> list[Assignment]:
        found = self._partitions()
        missing = planned.keys() - found.keys()
        if missing:
            raise SourceUnavailableError(
                f"stream {self.stream!r}, partition {', '.join(sorted(missing))}",
                f"it is part of batch {token.txid}, which is to be emitted again, and is missing",
                "Bring it back: a transactional stream waits for it.",
            )
        return [
            Assignment(partition, planned[name], again=True)
            for name, partition in found.items()
            if name in planned
        ]

    def _go_on_without(self, away: Mapping[str, str]) -> None:
        """Go on without the partitions that are away, if that loses nothing; log it once."""
        if away and self._again:
            name, problem = next(iter(away.items()))
            raise SourceUnavailableError(f"stream {self.stream!r}, partition {name}", problem)
        for name, problem in away.items():
            if name not in self._away:
                _logger.warning(
                    "stream %s goes on without partition %s: %s", self.stream, name, problem
                )
        for name in self._away - away.keys():
            _logger.info("stream %s: partition %s is read again, or was removed", self.stream, name)
        self._away = set(away)

    def success(self, token: Token) -> None:
        self._coordinator.success(token)

    def close(self) -> None:
        try:
            self._orders.close()
        finally:
            self._coordinator.close()
