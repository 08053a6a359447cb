"""Takes over the state of an older checkpoint, or of Storm, once."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import replace

from trident.batch.adopt import Adopt, OlderCheckpoint, StatesAlone, StormsStates
from trident.batch.states import GroupStates
from trident.log.checkpoint import FolderAt, groups_at, hold_checkpoint, shown
from trident.log.entry import LogEntry
from trident.log.errors import AdoptionError, CheckpointError
from trident.log.folders import SPARKS_LOG, STAGED
from trident.log.held import HeldCheckpoint
from trident.log.log import Log, LogWriter
from trident.log.staging import StagingArea
from trident.states.control import BURNT, ControlRecord
from trident.states.values import Token


def adopt_state(
    log: Log,
    group: str,
    states: GroupStates,
    adopt: Adopt,
    check: Callable[[Log, LogEntry], None],
    folder_at: FolderAt,
) -> LogEntry:
    """Return the first entry of the empty `log`, which takes over another log's state; append
    nothing."""
    match adopt.source:
        case StatesAlone() as alone:
            return _from_states(states, alone)
        case StormsStates(txid):
            return _from_storm(states, adopt, txid)
        case OlderCheckpoint(place, spark_checkpoint):
            if not groups_at(place):  # holding a checkpoint would make it
                raise _no_log(place, group)
            beside = None if spark_checkpoint is None else folder_at(spark_checkpoint)
            held = hold_checkpoint(place, beside)
            try:
                older = _older_group(held, group)
                if older is None:
                    raise _no_log(place, group)
                return _from_log(log, older, held, check)
            finally:
                held.release()


def _from_storm(states: GroupStates, adopt: Adopt, base: int) -> LogEntry:
    log_id = secrets.token_hex(8)
    states.check_unowned(log_id)
    states.check_occupied(f"{adopt}")
    # Attempt 0 might be taken for what Storm has written of the next batch.
    return LogEntry(1, "", log_id, begun=Token(base + 1, 1), committed=base, base=base)


def _older_group(checkpoint: HeldCheckpoint, group: str) -> str | None:
    """The group whose log goes on as that of `group`: the same, or the one that its first stream
    was in, if the stream that gave this its name was removed."""
    names = checkpoint.groups()
    if group in names:
        return group
    newest = {name: last for name in names if (last := checkpoint.log(name).newest()) is not None}
    found = [name for name, last in newest.items() if group in last.streams]
    # A log that another checkpoint has taken over is refused, so an open one comes first.
    return min(found, key=lambda name: newest[name].successor is not None, default=None)


def _no_log(place: str | os.PathLike[str], group: str) -> AdoptionError:
    return AdoptionError(
        f"adopt={shown(place)}",
        f"there is no log of the group {group}",
        "Give the checkpoint of a topology with the same streams; or, if that is lost, "
        "Adopt.from_states(<log id>, in_flight='committed' or 'burn').",
    )


def _from_log(
    log: Log, group: str, checkpoint: HeldCheckpoint, check: Callable[[Log, LogEntry], None]
) -> LogEntry:
    old = checkpoint.log(group)
    last = old.newest()
    if last is None:
        raise AdoptionError(old.place, "the log is empty", "There is nothing to adopt.")
    check(old, last)
    log_id = secrets.token_hex(8)
    if last.successor is not None:
        log_id, successor = last.successor
        if successor != log.place:
            raise adopted_already(old, successor)
        old.append(last)  # the adopting run may have failed before this was confirmed
    else:
        if last.clock == "dataframe":
            _check_nothing_staged(checkpoint, group, last.committed)
        # The old log is closed before the new one begins, so that no second one can adopt it.
        writer = LogWriter(old)
        writer.begin(replace(last, number=last.number + 1, successor=(log_id, log.place)))
        last = writer.entry
    return replace(
        last,
        number=1,
        writer="",
        log_id=log_id,
        begun=Token(last.committed + 1, last.begun.attempt + 1),
        base=last.committed,
        query_id=None,
        digest=None,
        adopted=(*last.adopted, last.log_id),
        successor=None,
    )


def _check_nothing_staged(checkpoint: HeldCheckpoint, group: str, committed: int) -> None:
    """Refuse a checkpoint with batches that its source is done with, and that are not
    committed."""
    try:
        folder = checkpoint.folder(group)
    except CheckpointError:
        raise AdoptionError(
            checkpoint.where,
            f"the group {group} reads a streaming DataFrame, and its batches may be staged in the "
            "folder beside that checkpoint, which was not given",
            "Give both: Adopt.from_checkpoint(<its URL>, <that folder>).",
        ) from None
    if not folder.names():
        raise AdoptionError(
            folder.place,
            "it is empty, and batches may be staged in the folder that the checkpoint had",
            "Give the spark_checkpoint= that it was started with, mounted at the same place. If "
            f"that was never made, make a folder {SPARKS_LOG} in it.",
        )
    area = StagingArea(folder.below(STAGED))
    found = [each.txid for each in area.staged() if each.txid > committed]
    if found:
        raise AdoptionError(
            area.folder.place,
            f"batches {found[0]} to {found[-1]} are staged there, and not committed",
            "Start the topology once more with that checkpoint: it commits them, and leaves none "
            "when it stops. Or, to go on without them, move that folder away.",
        )


def adopted_already(log: Log, successor: str) -> AdoptionError:
    """Return the error for a `log` whose state `successor` has taken over."""
    return AdoptionError(
        log.place,
        f"its state was taken over by {successor}",
        "Start with that checkpoint.",
    )


def _from_states(states: GroupStates, alone: StatesAlone) -> LogEntry:
    found: dict[str, ControlRecord] = {}
    others = set()
    for name, control in states.controls.items():
        record = control.read()
        if record is not None and record.log_id == alone.log_id:
            found[name] = record
        elif record is not None and not record.is_unused:
            others.add(record.log_id)
    if not found or others:
        raise AdoptionError(
            f"the log id {alone.log_id}",
            "no state has this log id" if not found else "some states have another log id",
            f"Found: {', '.join(sorted(others)) or 'no control record'}.",
        )
    newest = max(found.values(), key=lambda record: (record.token, record.committed))
    token, retried = newest.token, dict(newest.retried)
    if newest.committed < token.txid:
        if alone.in_flight == "burn":
            if states.inexact:
                raise AdoptionError(
                    f"in_flight='burn' for {', '.join(states.inexact)}",
                    "only what opaque maps hold of a batch can be undone",
                    "Give in_flight='committed'.",
                )
            retried[token.txid] = BURNT
        elif {record.token for record in found.values()} != {token}:
            raise AdoptionError(
                "in_flight='committed'",
                f"not every state has begun attempt {token.attempt} of batch {token.txid}, so it "
                "can't be committed",
                "Give in_flight='burn'.",
            )
        elif begun_only := [name for name, record in found.items() if not record.ready]:
            raise AdoptionError(
                "in_flight='committed'",
                f"of attempt {token.attempt} of batch {token.txid} not everything was written to "
                f"{', '.join(begun_only)}, so it can't have been committed",
                "Give in_flight='burn'; or restore the store, if it may have lost writes.",
            )
        elif token.attempt:
            retried[token.txid] = token.attempt
    return LogEntry(
        1,
        "",
        secrets.token_hex(8),
        begun=Token(token.txid + 1, 0),
        committed=token.txid,
        base=token.txid,
        states={name: record.token for name, record in found.items()},
        retried=retried,
        adopted=(alone.log_id,),
        reached=max((each.reached for each in found.values() if each.reached), default=None),
    )
