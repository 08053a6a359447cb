"""Errors of a checkpoint and its log; nothing was changed unless the text says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from trident.states.errors import TridentError


@dataclass(eq=False, repr=False)
class CheckpointError(TridentError):
    """The checkpoint can't be used."""

    checkpoint: str
    """The folder or URL as given."""
    problem: str
    advice: str
    """What is allowed, and the next step."""

    _template = "checkpoint {checkpoint}: {problem}. {advice}"


@dataclass(eq=False, repr=False)
class CheckpointInUseError(TridentError):
    """Another run, in this or another process, holds the checkpoint."""

    checkpoint: str
    """The folder or URL."""
    pid: str
    """The holder's process id, if it is known; in a store also its machine and its life."""
    here: bool = False
    """Whether that is the process that has tried."""

    def __str__(self) -> str:
        text = f"checkpoint {self.checkpoint} is in use by a run"
        if self.here:
            return (
                f"{text} of this process, {self.pid}: the topology runs already. Call stop() on "
                "the run that start() returned, or give this one a checkpoint and states of its "
                "own."
            )
        return (
            f"{text} in process {self.pid or 'unknown'}. Stop that run, or give this one a "
            "checkpoint of its own."
        )


@dataclass(eq=False, repr=False)
class LogError(TridentError):
    """The coordinator log doesn't fit what was asked of it; the run stops."""

    place: str
    """The log; or the file of its entry, or the stream whose metadata is to be logged."""


@dataclass(eq=False, repr=False)
class CorruptLogError(LogError):
    """An entry of the log can't be read."""

    found: str

    _template = (
        "the log entry {place} can't be read: {found}. Don't delete it: older entries don't "
        "know what it committed. Restore it from a backup of the checkpoint, or start with a "
        "new checkpoint and adopt=Adopt.from_states(<log id>, in_flight='committed' or 'burn'); "
        "the states' errors name their log id."
    )


@dataclass(eq=False, repr=False)
class LogConflictError(LogError):
    """Another run has appended to the log; this one may not append any more."""

    number: int
    """The entry that this run wanted to append."""

    _template = (
        "another run has written entry {number} or a later one to the log {place}: it has "
        "taken over. This run stops and changes nothing more; if both should not run, stop "
        "the other and start again."
    )


@dataclass(eq=False, repr=False)
class LogUnavailableError(LogError):
    """The log's disk or store failed: it is not known whether an entry was added, and will stay."""

    problem: str
    """What the system said."""
    advice: str = "Make room on its disk, or repair it."

    passing: ClassVar[bool] = True
    _template = (
        "the log {place} can't be read or written: {problem}. {advice} Nothing is built on an "
        "entry before it is confirmed to be there."
    )


@dataclass(eq=False, repr=False)
class TakenOverError(LogError):
    """Another run has taken over the log, and so every state of the group."""

    own: str
    found: str
    """The id of the run that wrote the newest entry."""

    _template = (
        "the log {place} was taken over by the run {found}; this is {own}. This run stops "
        "and changes nothing more; two runs can't share a checkpoint."
    )


@dataclass(eq=False, repr=False)
class LogMismatchError(LogError):
    """The log was written with another topology or source."""

    what: str
    expected: object
    """What the log says."""
    found: object
    """What the topology or the source says."""
    advice: str

    def __str__(self) -> str:
        return (
            f"the log {self.place} was written with another {self.what}: it has "
            f"{_shown(self.expected)}, found {_shown(self.found)}. {self.advice}"
        )


class ChangedTopologyError(LogMismatchError):
    """The log was written by a topology with other streams or states of the same names."""


@dataclass(eq=False, repr=False)
class PlacementError(LogError):
    """The source's log and ours disagree about which batch comes next."""

    committed: int
    """The last committed batch of the log."""
    source: str
    txid: int
    """The batch that it offers."""

    def __str__(self) -> str:
        return (
            f"the log {self.place} has committed batch {self.committed}, but {self.source} offers "
            f"batch {self.txid}; only {self.committed} (again) or {self.committed + 1} is "
            "possible. Files of one of the two are missing or from another time: restore both from "
            "one backup, or start with a new checkpoint and adopt=Adopt.from_checkpoint(<the old "
            "one>), knowing that the source then starts as a new one does."
        )


@dataclass(eq=False, repr=False)
class ReplayError(LogError):
    """The source replays a committed batch with other content."""

    source: str
    txid: int
    expected: str | None
    """The digest that was committed."""
    found: str | None
    """The digest of the replay."""

    _template = (
        "batch {txid} is committed in the log {place} with the digest {expected}, but "
        "{source} replays it with {found}: it now covers other data, which would be lost or "
        "counted twice. Restore both logs from one backup."
    )


@dataclass(eq=False, repr=False)
class StagingError(LogError):
    """Staged batches, computed and not committed yet, can't be committed."""

    problem: str
    advice: str
    """What is lost, and the next step."""

    _template = "staged batches in {place}: {problem}. {advice}"


@dataclass(eq=False, repr=False)
class AdoptionError(LogError):
    """The state of an older checkpoint can't be taken over as asked."""

    problem: str
    advice: str

    _template = "{place}: {problem}. {advice}"


@dataclass(eq=False, repr=False)
class MetadataError(LogError):
    """The log would give back a spout's metadata changed."""

    found: str
    """The metadata, shortened."""

    _template = (
        "the metadata of stream {place!r} can't be logged: {found}. Allowed are None, bool, "
        "int, finite float, str, and lists and dicts (with str keys) of them."
    )


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({text})" for name, text in value.items()) or "none"
    return str(value)
