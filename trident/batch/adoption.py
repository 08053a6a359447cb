"""Takes over the state of an older checkpoint, or of Storm, once."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from trident.batch.states import GroupStates
from trident.log.checkpoint import groups_at, held_checkpoint, shown
from trident.log.entry import LogEntry
from trident.log.errors import AdoptionError, CheckpointError
from trident.log.held import HeldCheckpoint
from trident.log.log import Log
from trident.log.staging import StagingArea
from trident.log.writer import LogWriter
from trident.states.control import BURNT, ControlRecord
from trident.states.values import Token

InFlight = Literal["committed", "burn"]


@dataclass(frozen=True, slots=True)
class Adoption:
    """How to continue state whose log is gone.

    Parameters
    ----------
    log_id : str
        The log id that the states' control records hold; their errors name it.
    in_flight : str
        What the last begun batch is: ``"committed"``, or ``"burn"`` to undo it, for opaque
        states only. Has no effect where the states know that it is committed.
    """

    log_id: str
    in_flight: InFlight

    def __post_init__(self) -> None:
        if self.in_flight not in get_args(InFlight):
            raise AdoptionError(
                "adopt=",
                f"in_flight is {self.in_flight!r}",
                "Allowed are 'committed' and 'burn'.",
            )


@dataclass(frozen=True, slots=True)
class StormState:
    """How to continue state that Storm wrote.

    Parameters
    ----------
    base : int
        Storm's last txid: what it wrote up to that batch counts, what it wrote of a later one does
        not. For transactional states it has to be the highest txid among their values: what Storm
        wrote there can't be undone, and our batch of that number would be taken for applied.
    """

    base: int

    def __post_init__(self) -> None:
        if type(self.base) is not int or self.base < 1:
            raise AdoptionError(
                "adopt=",
                f"base is {self.base!r}",
                "Give the last txid that Storm committed, a whole number from 1.",
            )


@dataclass(frozen=True, slots=True)
class OlderCheckpoint:
    """An older checkpoint to continue.

    Parameters
    ----------
    checkpoint : str or path
        Its folder or URL.
    spark_checkpoint : str or path, optional
        What it was started with beside a URL.
    """

    checkpoint: str | os.PathLike[str] = field(repr=False)
    spark_checkpoint: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        beside = () if self.spark_checkpoint is None else (self.spark_checkpoint,)
        for given in (self.checkpoint, *beside):
            if not (isinstance(given, str | os.PathLike) and given):
                # Only its type, as it may hold a password.
                found = "an empty str" if given == "" else type(given).__name__
                raise AdoptionError(
                    "adopt=",
                    f"found {found}, where a folder or URL is due",
                    "Give the path of the older checkpoint, or its URL, as a str.",
                )


Adopt = str | os.PathLike[str] | Mapping[str, Any] | Adoption | StormState


def adopt_state(
    log: Log,
    group: str,
    states: GroupStates,
    adopt: Adopt,
    check: Callable[[LogEntry], None],
) -> LogEntry:
    """Return the first entry of the empty `log`, which takes over the state of another log.

    Parameters
    ----------
    log : Log
        The new log; nothing is appended to it.
    group : str
        The batch group.
    states : GroupStates
        Its states; only read.
    adopt : path, mapping, Adoption or StormState
        The folder or URL of the older checkpoint, which then can't be started any more; or, where
        that is gone, the log id of its states and what to do with the batch that was in flight; or
        the last txid of Storm's, where Storm wrote the states.
    check : callable
        Raises where what an older log says doesn't fit, before that log is closed.

    Raises
    ------
    AdoptionError
        When there is nothing to adopt, or not in this way.
    CheckpointInUseError
        When a run still holds the older checkpoint.
    OtherLogError
        When a state that is said to be Storm's belongs to a log of ours.
    """
    match _told(adopt):
        case Adoption() as adoption:
            return _from_states(states, adoption)
        case StormState(base):
            return _from_storm(states, base)
        case OlderCheckpoint(place, spark_checkpoint):
            _check_there(place, group)
            held = held_checkpoint(place, spark_checkpoint)
            try:
                return _from_log(log, group, held, check)
            finally:
                held.release()


def _told(adopt: Adopt) -> OlderCheckpoint | Adoption | StormState:
    if isinstance(adopt, Adoption | StormState):
        return adopt
    if not isinstance(adopt, Mapping):
        return OlderCheckpoint(adopt)
    for keys, told in (
        ({"log_id", "in_flight"}, Adoption),
        ({"base"}, StormState),
        ({"checkpoint", "spark_checkpoint"}, OlderCheckpoint),
    ):
        if adopt.keys() == keys:
            return told(**adopt)
    raise AdoptionError(
        "adopt=",
        f"found the keys {', '.join(map(str, adopt)) or 'none'}",
        "Give 'log_id' and 'in_flight'; 'base', for state that Storm wrote; or 'checkpoint' and "
        "'spark_checkpoint', for a checkpoint by URL that had a streaming DataFrame.",
    )


def _from_storm(states: GroupStates, base: int) -> LogEntry:
    log_id = secrets.token_hex(8)
    states.check_unowned(log_id)
    states.check_occupied(f"adopt={{'base': {base}}}")
    # Attempt 0 might be taken for what Storm has written of the next batch.
    return LogEntry(1, "", log_id, begun=Token(base + 1, 1), committed=base, base=base)


def _check_there(place: str | os.PathLike[str], group: str) -> None:
    """Refuse a place without a log of the group, before a checkpoint is made there."""
    if group not in groups_at(place):
        raise AdoptionError(
            f"adopt={shown(place)}",
            f"there is no log of the group {group}",
            "Give the checkpoint of a topology with the same streams; or, where it is gone, "
            "adopt={'log_id': …, 'in_flight': 'committed' or 'burn'}.",
        )


def _from_log(
    log: Log, group: str, checkpoint: HeldCheckpoint, check: Callable[[LogEntry], None]
) -> LogEntry:
    old = checkpoint.log(group)
    last = old.newest()
    if last is None:
        raise AdoptionError(old.place, "the log is empty", "There is nothing to adopt.")
    check(last)
    log_id = secrets.token_hex(8)
    if last.successor is not None:
        log_id, successor = last.successor
        if successor != log.place:
            raise adopted_already(old, successor)
        old.append(last)  # whoever did may have failed before it was confirmed
    else:
        if last.clock == "dataframe":
            _check_nothing_staged(checkpoint, group, last.committed)
        # The old log is closed before the new one begins, so that no second one can adopt it.
        writer = LogWriter(old)
        writer.begin(replace(last, number=last.number + 1, successor=(log_id, log.place)))
        last = writer.entry
    return LogEntry(
        1,
        "",
        log_id,
        begun=Token(last.committed + 1, last.begun.attempt + 1),
        committed=last.committed,
        base=last.committed,
        states=last.states,
        kinds=last.kinds,
        topology=last.topology,
        accepted=last.accepted,
        metadata=last.metadata,
        planned=last.planned,
        retried=last.retried,
        swept=last.swept,
        adopted=(*last.adopted, last.log_id),
    )


def _check_nothing_staged(checkpoint: HeldCheckpoint, group: str, committed: int) -> None:
    """Refuse a checkpoint with batches that its source is done with, and that nobody committed."""
    try:
        folder = checkpoint.folder(group) / "staged"
    except CheckpointError:
        raise AdoptionError(
            checkpoint.where,
            f"the group {group} reads a streaming DataFrame, and whether batches of it are staged "
            "in the folder beside that checkpoint can't be seen",
            "Give both: adopt={'checkpoint': …, 'spark_checkpoint': …}.",
        ) from None
    if not folder.parent.is_dir():
        raise AdoptionError(
            str(folder.parent),
            "there is no such folder, and batches may be staged where that checkpoint had it",
            "Give the spark_checkpoint= that it was started with, mounted where it was. If that "
            "was never made, make this folder.",
        )
    found = [each.txid for each in StagingArea(folder).staged() if each.txid > committed]
    if found:
        raise AdoptionError(
            str(folder),
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


def _from_states(states: GroupStates, adopt: Adoption) -> LogEntry:
    found: dict[str, ControlRecord] = {}
    others = set()
    for name, control in states.controls.items():
        record = control.read()
        if record is not None and record.log_id == adopt.log_id:
            found[name] = record
        elif record is not None and not record.is_unused:
            others.add(record.log_id)
    if not found or others:
        raise AdoptionError(
            f"adopt={adopt.log_id}",
            "no state has this log id" if not found else "some states have another log id",
            f"Found: {', '.join(sorted(others)) or 'no control record'}.",
        )
    newest = max(found.values(), key=lambda record: (record.token, record.committed))
    token, retried = newest.token, dict(newest.retried)
    if newest.committed < token.txid:
        if adopt.in_flight == "burn":
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
        adopted=(adopt.log_id,),
    )
