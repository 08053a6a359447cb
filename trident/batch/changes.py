"""Compares a topology with what the log says of it, and refuses what would change its states."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trident.log.entry import LogEntry
from trident.log.errors import ChangedTopologyError, StagingError
from trident.log.staging import StagingArea
from trident.states.values import StateType

_logger = logging.getLogger("trident")

Topology = Mapping[str, Mapping[str, Any]]
"""What the log keeps. Under ``sources``: the class of each stream's source, by its id. Under
``left``: the schema of each removed stream. Under ``states``, for each state: its class (``by``),
the fields that it sees (``of``), its ``key``, the type of an aggregate (``value``), the version of
its form (``schema``), its ``window``, and how it is ``kept`` if not as most. Empty if nothing is
known. A type may be None: not known."""


class _Change(NamedTuple):
    part: str
    name: str
    was: str
    found: str
    advice: str
    acceptable: bool = True


_OF_STATE = (
    "Restore it as it was; or give the state another name (name=…), under which it begins anew."
)
_OF_VALUES = f"{_OF_STATE} Or give it a higher schema_version, with an upgrade() of the old values."
_OF_SCHEMA = (
    "The state may hold values of the later form. Restore the code for it; or give a later "
    "schema_version, with an upgrade() of that form too."
)
_OF_WINDOW = (
    f"Open windows can't go on as others. {_OF_STATE} Or build the windows anew from history: "
    "python -m trident rebuild."
)
_OF_STREAM = (
    "Restore it as it was; or start the other source with a checkpoint and states of its own."
)


def check_unchanged(
    place: str,
    entry: LogEntry,
    topology: Topology,
    kinds: Mapping[str, str],
    streams: Mapping[str, str] | None,
    accept: Mapping[str, str],
) -> None:
    """Raise if a log was written by another topology, except for the changes in `accept`."""
    changes = [
        *_changed_streams(entry, topology.get("sources", {}), streams),
        *_changed_states(entry, topology.get("states", {}), kinds),
    ]
    found: dict[str, str] = {}  # a state and a stream with one name are accepted together
    for each in changes:
        found[each.name] = "; ".join(filter(None, (found.get(each.name), each.found)))
    due = [
        each for each in changes if not each.acceptable or accept.get(each.name) != found[each.name]
    ]
    if due:
        advice = " ".join(dict.fromkeys(each.advice for each in due))
        if all(each.acceptable for each in due):
            advice += f" To go on with the old values all the same: start(accept_change={found})."
        raise ChangedTopologyError(
            place,
            "topology",
            {f"{each.part} {each.name!r}": each.was for each in due},
            {f"{each.part} {each.name!r}": each.found for each in due},
            advice,
        )
    for each in changes:
        _logger.warning(
            "accepted: the %s %r was %s, and is %s", each.part, each.name, each.was, each.found
        )


def check_none_staged(entry: LogEntry, area: StagingArea, states: Mapping[str, Any]) -> None:
    """Raise if staged batches update a state that has changed: they hold what its old aggregator
    has made."""
    known = entry.topology.get("states", {})
    changed = [name for name in states if name in known and not _same(known[name], states[name])]
    staged = area.staged() if changed else []
    if txids := [each.txid for each in staged if each.txid > entry.committed]:
        raise StagingError(
            area.folder.place,
            f"batches {txids[0]} to {txids[-1]} update the state {changed[0]!r} as it was",
            "Start the topology that has staged them once more with this checkpoint: it commits "
            "them, and leaves none when it stops. Then start the changed one.",
        )


def _changed_streams(
    entry: LogEntry, sources: Mapping[str, str], streams: Mapping[str, str] | None
) -> Iterator[_Change]:
    known = entry.topology.get("sources", {})
    schemas = {**entry.topology.get("left", {}), **entry.streams}
    for name in {**schemas, **known}:
        was, found = known.get(name), sources.get(name)
        other = was is not None and found is not None and was != found
        if streams is None or name not in schemas:  # a new log takes over, or one without schemas
            if other and name in entry.metadata:
                yield _Change("stream", name, str(was), str(found), _OF_STREAM)
        elif name in streams and (other or schemas[name] != streams[name]):
            before, after = schemas[name], streams[name]
            if was and found:
                before, after = f"{was} of {before}", f"{found} of {after}"
            # Spark's own checkpoint is of one source.
            acceptable = not (other and str(was).startswith("DataFrame("))
            yield _Change("stream", name, before, after, _OF_STREAM, acceptable)


def _changed_states(
    entry: LogEntry, states: Mapping[str, Any], kinds: Mapping[str, str]
) -> Iterator[_Change]:
    for name, was in entry.topology.get("states", {}).items():
        found = states.get(name)
        if found is None or "by" not in was or _never_committed(entry, name, kinds):
            continue
        if was.get("window") != found.get("window"):
            yield _Change("state", name, _shown(was), _shown(found), _OF_WINDOW, acceptable=False)
            continue
        version, now = was.get("schema", 1), found.get("schema", 1)
        if now < version:
            yield _Change("state", name, _shown(was), _shown(found), _OF_SCHEMA, acceptable=False)
        elif not _same_keys(was, found):
            yield _Change("state", name, _shown(was), _shown(found), _OF_STATE)
        elif now == version and not _same_values(was, found):
            yield _Change("state", name, _shown(was), _shown(found), _OF_VALUES)


def _never_committed(entry: LogEntry, name: str, kinds: Mapping[str, str]) -> bool:
    """Whether no batch of a state counts yet, so that it may change in any way."""
    if entry.follows_storm:
        return True
    opaque = kinds.get(name) == StateType.OPAQUE.value
    return opaque and name not in entry.states and name not in entry.accepted


def _same(was: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether a state's entries are still the same, as far as the log knows."""
    if "by" not in was:
        return True
    form = was.get("schema") == found.get("schema")
    return form and _same_keys(was, found) and _same_values(was, found)


def _same_keys(was: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether entries are still found and read in the same way; an older log knows only a part."""
    kept = "of" not in was or was.get("kept") == found.get("kept")
    return kept and _same_types(was.get("key", {}), found.get("key", {}))


def _same_values(was: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether values are still made in the same way."""
    if was["by"] != found["by"]:
        return False
    if "of" not in was or "of" not in found:
        return True
    values = {"": was.get("value")}, {"": found.get("value")}
    return _same_types(was["of"], found["of"]) and _same_types(*values)


def _same_types(was: Mapping[str, str | None], found: Mapping[str, str | None]) -> bool:
    pairs = zip(was.values(), found.values(), strict=False)
    return [*was] == [*found] and all(None in pair or pair[0] == pair[1] for pair in pairs)


def _shown(state: Mapping[str, Any]) -> str:
    parts = [str(state["by"])]
    for name, word in {"of": "of", "key": "by"}.items():
        fields = state.get(name, {}).items()
        if fields:
            listed = ", ".join(f"{name} {kind}" if kind else name for name, kind in fields)
            parts.append(f"{word} {listed}")
    if value := state.get("value"):
        parts.append(f"as {value}")
    if version := state.get("schema"):
        parts.append(f"in version {version}")
    if kept := state.get("kept"):
        parts.append(f"kept {kept}")
    text = " ".join(parts)
    return f"{text}, {state['window']}" if "window" in state else text


def described_anew(entry: LogEntry, topology: Topology, streams: Mapping[str, str]) -> Topology:
    """Return what the log keeps of a topology from now on; log which states are new or removed."""
    if not topology:
        return entry.topology
    states = dict(topology["states"])
    known = {name: {} for name in entry.states} | dict(entry.topology.get("states", {}))
    new = [name for name in states if name not in known] if entry.topology else []
    for name, was in known.items():
        if name not in states:
            states[name] = {**was, "until": was.get("until", entry.committed)}
            _logger.log(
                logging.INFO if "until" in was else logging.WARNING,
                "the state %r is no longer in the topology: it stays as it was after batch %d%s",
                *(name, states[name]["until"], _perhaps_renamed(name, new)),
            )
        elif was.get("until", entry.committed) < entry.committed:
            _logger.warning(
                "the state %r is in the topology again: it has nothing of batches %d to %d",
                *(name, was["until"] + 1, entry.committed),
            )
    for name in new:
        _logger.info("the state %r is new: it begins with batch %d", name, entry.committed + 1)
    sources = {**entry.topology.get("sources", {}), **topology.get("sources", {})}
    schemas = {**entry.topology.get("left", {}), **entry.streams}
    left = {name: schema for name, schema in schemas.items() if name not in streams}
    anew = {**topology, "states": states, "sources": sources}
    return {**anew, "left": left} if left else anew


def _perhaps_renamed(name: str, new: list[str]) -> str:
    if not new:
        return ""
    names = ", ".join(map(repr, new))
    return f". New is {names}: if that is it, declare it by StateSpec(…, renamed_from={name!r})"
