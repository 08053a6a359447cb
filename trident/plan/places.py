"""Where a state is kept, what a batch asks of its store, and what the log keeps of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trident.backends.rows import Rows
from trident.operations.annotations import callable_name, identified
from trident.operations.chained import ChainedAggregator
from trident.operations.kept_answers import KeptAnswers
from trident.operations.row_writer import RowWriter
from trident.operations.state_updaters import (
    AggregatingUpdater,
    CombinerAggStateUpdater,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
)
from trident.plan.nodes import AggregateNode, StateUpdateNode
from trident.plan.plan import BatchGroup
from trident.states.maps.factory import MapStateFactory
from trident.states.printable import masked
from trident.states.serializers import JSONSerializer
from trident.states.state import StateFactory
from trident.states.store import OpenedStore, RoundTrips
from trident.windows.window_updater import WindowUpdater


@dataclass(frozen=True)
class Place:
    """Where a state is kept, as far as its factory says; no host for a file and for this
    process."""

    kind: str
    host: str = ""
    database: str = ""
    prefix: str = ""

    def __str__(self) -> str:
        text = f"{self.kind} at {self.host}" if self.host else self.kind
        more = [("database", self.database), ("prefix", self.prefix)]
        return ", ".join([text, *(f"{name} {value}" for name, value in more if value)])


def place_of(factory: StateFactory) -> Place | None:
    """The place of a factory's states, without secrets; None where nothing is known of it."""
    if factory.identity is None:
        return None
    kind, where, prefix, *_ = (*map(str, factory.identity), "", "", "")
    prefix = "" if isinstance(factory, Rows) else without_secrets(prefix)  # its label has the table
    if factory.map_type is not None and not factory.map_type.lasts:
        return Place("the memory of this process", prefix=prefix)
    if isinstance(factory, MapStateFactory) and isinstance(factory.store, OpenedStore):
        made_by = f"the map that {callable_name(factory.store.make)} makes"
        return Place(made_by, database=without_secrets(factory.store.name or ""))
    if where.startswith("/"):  # a path on this machine
        return Place(kind, "", where, prefix)
    scheme, mark, rest = where.partition("://")
    host, _, database = without_secrets(rest if mark else scheme).partition("/")
    return Place(kind, host, database, prefix)


def kept_as(factory: StateFactory) -> str:
    """How a factory's states keep their values, which decides the guarantee."""
    if isinstance(factory, Rows):
        return "opaque rows"
    return f"{factory.kind.value} map" if factory.kind else "kind not known"


def calls_of(factory: StateFactory) -> RoundTrips | None:
    """How many calls of a factory's store a batch takes without failures; None if unknown."""
    return factory.store.calls if isinstance(factory, MapStateFactory) else None


def without_secrets(text: str) -> str:
    """An address without user, passwords and options; empty where any part may be a password."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "", text
    plain, _, options = rest.partition("?")
    if "@" in options:
        return ""
    kept = plain.rpartition("@")[2]
    return re.sub(r"\s+", " ", masked(f"{scheme}{mark}{kept}")).strip()


def describe_states(group: BatchGroup) -> dict[str, dict[str, Any]]:
    """Each state that a group updates, by its first name, as JSON: see `trident.batch.changes`."""
    return {node.state.kept_name: _describe(node) for node in group.updates}


def _describe(node: StateUpdateNode) -> dict[str, Any]:
    updater = node.updater
    if isinstance(updater, RowWriter):
        return {"by": updater.label}
    by = updater.aggregator if isinstance(updater, AggregatingUpdater) else updater
    found: dict[str, Any] = {"by": identified(by), "of": _input_types(node)}
    if node.group:
        found["key"] = dict(node.fields.select(node.group).types)
    if isinstance(updater, WindowUpdater):
        found["window"] = updater.shape
    elif isinstance(updater, AggregatingUpdater):
        found["value"] = [*node.fields.types.values()][-1]
    if (schema := getattr(node.state.factory, "schema", None)) is not None:
        found["schema"] = schema.version
    if kept := _encoding_text(node.state.factory):
        found["kept"] = kept
    return found


def _input_types(node: StateUpdateNode) -> dict[str, str | None]:
    """The fields that an aggregator or updater sees, with their types."""
    updater = node.updater
    if isinstance(updater, KeptAnswers):  # they are of any fields
        return {}
    if isinstance(updater, MapReducerAggStateUpdater | WindowUpdater):
        return dict(node.parent.fields.select(updater.inputs).types)
    if isinstance(updater, CombinerAggStateUpdater | MapCombinerAggStateUpdater):
        before = node.parent
        assert isinstance(before, AggregateNode)  # which aggregates the batch's tuples
        made = before.aggregator  # where entries expire, together with the latest time
        inputs = made.links[0].inputs if isinstance(made, ChainedAggregator) else before.inputs
        return dict(before.parent.fields.select(inputs).types)
    return dict(node.parent.fields.select(node.inputs).types)


def _encoding_text(factory: StateFactory) -> str:
    """How entries are found and read, if not in the default way."""
    if not isinstance(factory, MapStateFactory):
        return ""
    parts = []
    if factory.key_factory is not None:
        parts.append(f"under the names of {callable_name(factory.key_factory)}")
    if type(factory.serializer) is not JSONSerializer:
        parts.append(f"by {callable_name(type(factory.serializer))}")
    return " ".join(parts)
