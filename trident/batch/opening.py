"""The first entry that a run writes: of a new log, or for the next attempt of the last batch."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trident.batch.adopt import Adopt
from trident.batch.adoption import adopt_state, adopted_already
from trident.batch.changes import Topology, check_unchanged, described_anew
from trident.batch.states import GroupStates
from trident.log.checkpoint import FolderAt, local_folder
from trident.log.entry import LogEntry, plans_of_streams
from trident.log.errors import AdoptionError, LogMismatchError
from trident.log.log import Log
from trident.plan.nodes import Clock
from trident.states.values import Token

_logger = logging.getLogger("trident")


@dataclass(frozen=True, kw_only=True)
class LogTerms:
    """What a topology and its start say of a group; the log's entry must fit it."""

    streams: Mapping[str, str]
    """The schema of each stream, by its id."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """The paths that each stream of files reads; they must stay the same."""
    clock: Clock = "spout"
    adopt: Adopt | None = None
    """Whose state a new log takes over; ignored once that is done."""
    accept_loss: Mapping[str, int] = field(default_factory=dict)
    """The losses to accept: a batch for each state; see :meth:`GroupStates.accept`."""
    topology: Topology = field(default_factory=dict)
    """What the log keeps of the topology; empty if nothing is to be compared."""
    accept_change: Mapping[str, str] = field(default_factory=dict)
    """The changes to accept; see :func:`check_unchanged`."""
    folder_at: FolderAt = local_folder


def opening_entry(log: Log, group: str, states: GroupStates, terms: LogTerms) -> LogEntry:
    """Return the first entry that a run writes to `log`, its writer still empty; appends nothing.

    The states are only read.

    A log of other streams, files or states, or of another clock, is refused. So is a new log if a
    state has entries, or is another log's. An opaque state that the other log never made ready is
    begun behind that log's attempts.
    """
    newest = log.newest()
    if newest is not None:
        _check_same(log, newest, terms.clock, terms.adopt)
        _check_streams(log, newest, terms.streams, states)
        _check_topology(log, newest, states, terms, terms.streams)
        _check_reads(log, newest, terms.reads)
        # The reserved attempt belongs to the run that wrote the entry; this one takes the next.
        attempt = newest.begun.attempt + 1
        if not newest.committed:
            attempt = states.attempt_behind(newest.log_id, attempt)
        begun = Token(newest.committed + 1, attempt)
        first = replace(newest, number=newest.number + 1, begun=begun)
    elif terms.adopt is not None:

        def check(old: Log, last: LogEntry) -> None:
            _check_none_begun(old, last, terms.streams, states)
            _check_topology(old, last, states, terms, None)
            _check_none_unmerged(old, last, states)

        first = adopt_state(log, group, states, terms.adopt, check, terms.folder_at)
    else:
        log_id = secrets.token_hex(8)
        states.check_free(log_id)
        begun = Token(1, states.attempt_behind(log_id, 0))
        first = LogEntry(1, "", log_id, begun=begun, committed=0)
    return replace(
        first,
        clock=terms.clock,
        streams=dict(terms.streams),
        reads=dict(terms.reads),
        kinds=_same_kinds(log, first, states),
        topology=described_anew(first, terms.topology, terms.streams),
    )


def _check_topology(
    log: Log,
    entry: LogEntry,
    states: GroupStates,
    terms: LogTerms,
    streams: Mapping[str, str] | None,
) -> None:
    """Refuse a changed topology; without `streams` the log takes over from another one."""
    check_unchanged(log.place, entry, terms.topology, states.kinds, streams, terms.accept_change)
    _check_names(log, entry, states)


def _check_names(log: Log, entry: LogEntry, states: GroupStates) -> None:
    """Refuse a state that the log knows by another name, as it was not compared."""
    known = sorted(entry.topology.get("states", ()))
    if known and (names := sorted(states.unknown(known, entry.log_id))):
        raise LogMismatchError(
            log.place,
            "set of states",
            known,
            names,
            f"The place of {names[0]!r} holds one of those. If it was renamed, say so: "
            f"StateSpec(…, renamed_from={known[0]!r}). Otherwise give {names[0]!r} a prefix of its "
            "own, and it begins anew.",
        )


def _check_none_unmerged(log: Log, entry: LogEntry, states: GroupStates) -> None:
    """Refuse to leave a table of rows behind that lacks the last batch of the log."""
    if names := states.unmerged(entry.reserved):
        raise AdoptionError(
            log.place,
            f"the run that has committed batch {entry.committed} ended before it merged the batch "
            f"into the table of {names[0]!r}, which this topology does not write",
            "Start the topology that has written it once more, with that checkpoint: it merges "
            "the batch. Then stop it, and adopt.",
        )


def _same_kinds(log: Log, entry: LogEntry, states: GroupStates) -> Mapping[str, str]:
    """The kind of each state; refuse one that `entry` knows as another kind.

    The log has to know it, as a value in the store may look like an entry of another kind. If Storm
    wrote the state, the kind may be corrected until the first batch commits: a wrong one fails when
    an entry is read, before any is written.
    """
    for name, kind in states.kinds.items():
        written = entry.kinds.get(name, kind)
        if written != kind and not entry.follows_storm:
            raise LogMismatchError(
                log.place,
                f"kind of the state {name!r}",
                written,
                kind,
                "Keep that kind; or give the state another name (name=…), under which it begins "
                "anew.",
            )
    return {**entry.kinds, **states.kinds}


def _check_same(log: Log, newest: LogEntry, clock: Clock, adopt: Adopt | None) -> None:
    if newest.successor is not None:
        raise adopted_already(log, newest.successor[1])
    if adopt is not None and not newest.has_adopted:
        raise AdoptionError(
            log.place,
            f"it has state of its own, up to batch {newest.committed}",
            "Only a new checkpoint can adopt: leave adopt= out, or give a new checkpoint.",
        )
    if newest.clock != clock:
        raise LogMismatchError(
            log.place,
            "kind of source",
            newest.clock,
            clock,
            "A group of spouts and one with a streaming DataFrame can't share a log: start with a "
            "new checkpoint and adopt=Adopt.from_checkpoint(<this one>).",
        )


def _check_streams(
    log: Log, newest: LogEntry, streams: Mapping[str, str], states: GroupStates
) -> None:
    """Refuse a set of streams that the log can't go on with.

    Streams may be added or removed, but not both at once: that may be one with another id.
    """
    removed, new = newest.streams.keys() - streams.keys(), streams.keys() - newest.streams.keys()
    if not removed and not new:
        return
    _check_none_begun(log, newest, streams, states)
    if newest.clock == "spout" and not (removed and new):
        _log_streams(newest, sorted(removed), sorted(new))
        return
    advice = "Give the streams their old ids, or start with a new checkpoint and "
    advice += "adopt=Adopt.from_checkpoint(<this one>)."
    raise LogMismatchError(log.place, "set of streams", newest.streams, streams, advice)


def _check_none_begun(
    log: Log, newest: LogEntry, streams: Mapping[str, str], states: GroupStates
) -> None:
    """Refuse other streams while a batch is under way that may hold tuples of the old ones."""
    due = newest.committed + 1
    if newest.streams.keys() != streams.keys() and (
        plans_of_streams(newest.planned or {}) or states.may_hold(due)
    ):
        advice = (
            f"Batch {due} has begun with the old streams, and may be in the states: start once "
        )
        advice += "with these, and stop that run, which commits the batch."
        raise LogMismatchError(log.place, "set of streams", newest.streams, streams, advice)


def _log_streams(newest: LogEntry, removed: Sequence[str], new: Sequence[str]) -> None:
    due = newest.committed + 1
    for stream in removed:
        what = "the stream %r is no longer in the topology: nothing of it is read from batch %d on"
        _logger.warning(what, stream, due)
    for stream in new:
        back = stream in newest.metadata
        what = "is in the topology again: it goes on" if back else "is new: it begins"
        _logger.info("the stream %r %s with batch %d", stream, what, due)


def _check_reads(log: Log, newest: LogEntry, reads: Mapping[str, str]) -> None:
    for stream, known in newest.reads.items():
        if (found := reads.get(stream, "no files")) != known:
            raise LogMismatchError(
                log.place,
                f"path of the stream {stream!r}",
                known,
                found,
                "Finished files are known by their full paths. Give the stream its old path, or "
                "start with a new checkpoint and adopt=Adopt.from_checkpoint(<this one>), which "
                "reads all files anew.",
            )
