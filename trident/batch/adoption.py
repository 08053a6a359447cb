"""Taking over the state of an older checkpoint, once."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from trident.batch.states import GroupStates
from trident.log.checkpoint import group_folder, local_path
from trident.log.entry import LogEntry
from trident.log.errors import AdoptionError
from trident.log.file_log import FileLog
from trident.log.lock import CheckpointLock
from trident.log.log import Log
from trident.log.writer import LogWriter
from trident.states.control import BURNT, ControlRecord
from trident.states.values import Token

InFlight = Literal["committed", "burn"]


@dataclass(frozen=True, slots=True)
class Adoption:
    """How to continue state whose log is gone.

    Parameters
    ----------
    lineage : str
        The lineage that the states' control records hold; their errors name it.
    in_flight : str
        What the last begun batch is: ``"committed"``, or ``"burn"`` to undo it, for opaque
        states only. Does not matter where the states know that it is committed.
    """

    lineage: str
    in_flight: InFlight

    def __post_init__(self) -> None:
        if self.in_flight not in get_args(InFlight):
            raise AdoptionError(
                "adopt=",
                f"in_flight is {self.in_flight!r}",
                "Allowed are 'committed' and 'burn'.",
            )


Adopt = str | os.PathLike[str] | Mapping[str, Any] | Adoption


def adopt_state(log: Log, group: str, states: GroupStates, adopt: Adopt) -> LogEntry:
    """Return the first entry of the empty `log`, which takes over the state of another.

    Parameters
    ----------
    log : Log
        The new log; nothing is appended to it.
    group : str
        The batch group.
    states : GroupStates
        Its states; only read.
    adopt : path, mapping or Adoption
        The path of the older checkpoint, which then can't be started any more; or, where that is
        gone, the lineage of its states and what to do with the batch that was in flight.

    Raises
    ------
    AdoptionError
        When there is nothing to adopt, or not in this way.
    CheckpointInUseError
        When a run still holds the older checkpoint.
    """
    if isinstance(adopt, Mapping):
        if adopt.keys() != {"lineage", "in_flight"}:
            raise AdoptionError(
                "adopt=",
                f"found the keys {', '.join(map(str, adopt)) or 'none'}",
                "Give 'lineage' and 'in_flight'.",
            )
        adopt = Adoption(**adopt)
    if isinstance(adopt, Adoption):
        return _from_states(states, adopt)
    return _from_log(log, group, adopt)


def _from_log(log: Log, group: str, path: str | os.PathLike[str]) -> LogEntry:
    checkpoint = local_path(path)
    old = FileLog(group_folder(checkpoint, group) / "log")
    if not old.folder.is_dir():
        raise AdoptionError(
            str(checkpoint),
            f"it has no log of the group {group}",
            "Give the checkpoint of a topology with the same streams; or, where it is gone, "
            "adopt={'lineage': …, 'in_flight': 'committed' or 'burn'}.",
        )
    lock = CheckpointLock(checkpoint)
    try:
        last = old.newest()
        if last is None:
            raise AdoptionError(str(old.folder), "the log is empty", "There is nothing to adopt.")
        lineage = secrets.token_hex(8)
        if last.successor is not None:
            lineage, successor = last.successor
            if successor != log.place:
                raise adopted_already(old, successor)
        else:
            # First closed, then continued: two new checkpoints can't both take it.
            writer = LogWriter(old)
            writer.begin(replace(last, number=last.number + 1, successor=(lineage, log.place)))
            last = writer.entry
    finally:
        lock.release()
    return LogEntry(
        1,
        "",
        lineage,
        begun=Token(last.committed + 1, last.begun.attempt + 1),
        committed=last.committed,
        base=last.committed,
        states=last.states,
        metadata=last.metadata,
        planned=last.planned,
        exceptions=last.exceptions,
        adopted=(*last.adopted, last.lineage),
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
        if record is not None and record.lineage == adopt.lineage:
            found[name] = record
        elif record is not None:
            others.add(record.lineage)
    if not found or others:
        raise AdoptionError(
            f"adopt={adopt.lineage}",
            "no state has this lineage" if not found else "some states have another lineage",
            f"Found: {', '.join(sorted(others)) or 'no control record'}.",
        )
    newest = max(found.values(), key=lambda record: (record.token, record.committed))
    token, exceptions = newest.token, dict(newest.exceptions)
    if newest.committed < token.txid:
        if adopt.in_flight == "burn":
            if states.inexact:
                raise AdoptionError(
                    f"in_flight='burn' for {', '.join(states.inexact)}",
                    "only what opaque maps hold of a batch can be undone",
                    "Give in_flight='committed'.",
                )
            exceptions[token.txid] = BURNT
        elif {record.token for record in found.values()} != {token}:
            raise AdoptionError(
                "in_flight='committed'",
                f"not every state has begun attempt {token.attempt} of batch {token.txid}, so it "
                "can't be committed",
                "Give in_flight='burn'.",
            )
        elif token.attempt:
            exceptions[token.txid] = token.attempt
    return LogEntry(
        1,
        "",
        secrets.token_hex(8),
        begun=Token(token.txid + 1, 0),
        committed=token.txid,
        base=token.txid,
        states={name: record.token for name, record in found.items()},
        exceptions=exceptions,
        adopted=(adopt.lineage,),
    )
