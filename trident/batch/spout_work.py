"""A batch whose tuples come from spouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from trident.batch.computed import Computed, Computing, Postponed
from trident.batch.outcome import Outcome
from trident.batch.work import BatchWork, GroupEngine, NothingNew
from trident.sources.source import StreamSource, Tuples
from trident.states.control import ControlRecord
from trident.states.values import Token

_LENGTH = attrgetter("length")


class SpoutWork(BatchWork):
    """All batches of a group of spouts, one after the other."""

    def __init__(self, sources: Sequence[StreamSource], engine: GroupEngine) -> None:
        self._sources = sources
        self._engine = engine
        self._planning = [source for source in sources if source.plans]
        self._planned: dict[tuple[int, str], tuple[Any, Any]] = {}
        self._emitted: dict[str, Tuples] = {}
        self.filled = False
        """Whether the last emission held any tuple."""

    def plan(self, txid: int, metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if not self._planning:
            return None
        return {
            source.stream: self._plan_of(source, txid, metadata.get(source.stream))
            for source in self._planning
        }

    def _plan_of(self, source: StreamSource, txid: int, before: Any) -> Any:
        """What a source plans: decided once, and anew only if the batch before has changed."""
        known = self._planned.get((txid, source.stream))
        if known is None or known[0] != before:
            known = before, source.plan(txid, before)
            self._planned[txid, source.stream] = known
        return known[1]

    def emit(self, token: Token, metadata: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
        self._emitted = {}
        self.filled = False
        following: dict[str, Any] = {}
        found: dict[str, Any] = {}
        active: dict[str, Sequence[str]] = {}
        for source in self._sources:
            stream = source.stream
            batch = source.emit(token, metadata.get(stream), planned.get(stream))
            self._emitted[stream] = batch.tuples
            active[stream] = [stream] if batch.active is None else batch.active
            if source.remembers:
                following[stream] = batch.metadata
            if batch.planned is not None:
                found[stream] = batch.planned
        self.emitted_metadata = following
        self.emitted_plan = found
        self.active = active
        self.filled = any(map(_LENGTH, self._emitted.values()))
        to_run = self.filled or self._engine.acts_on_nothing
        if not to_run and not token.attempt and not planned and self._leaves_txid(metadata):
            raise NothingNew
        return to_run

    def _leaves_txid(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a txid that was emitted without tuples can be emitted again, as if it had not
        been."""
        same = all(metadata.get(name) == found for name, found in self.emitted_metadata.items())
        return same and all(source.leaves_txid for source in self._sources)

    def compute(self, token: Token) -> Computed | Computing | Postponed:
        # Before the batch begins only errors read the record, and only its token.
        emitted, self._emitted = self._emitted, {}
        return self._engine.compute(ControlRecord("", token, token.txid - 1), emitted)

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        return self._engine.write(record, computed)

    def drop(self) -> None:
        emitted, self._emitted = self._emitted, {}
        self._engine.drop(emitted)

    def committing(self, token: Token) -> None:
        for source in self._sources:
            source.committing(token)

    def committed(self, token: Token) -> None:
        for done in [each for each in self._planned if each[0] <= token.txid]:
            del self._planned[done]
        for source in self._sources:
            source.success(token)
