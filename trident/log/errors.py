"""What can go wrong with a checkpoint and its log; nothing was changed unless the text says so."""

from __future__ import annotations

from collections.abc import Mapping

from trident.states.errors import TridentError


class CheckpointError(TridentError):
    """The checkpoint can't be used.

    Parameters
    ----------
    checkpoint : str
        The folder or URL as given.
    problem : str
        What was found.
    advice : str
        What is allowed, and the next step.
    """

    def __init__(self, checkpoint: str, problem: str, advice: str) -> None:
        super().__init__(checkpoint, problem, advice)

    def __str__(self) -> str:
        checkpoint, problem, advice = self.args
        return f"checkpoint {checkpoint}: {problem}. {advice}"


class CheckpointInUseError(TridentError):
    """Another run, in this or another process, holds the checkpoint.

    Parameters
    ----------
    checkpoint : str
        The folder.
    pid : str
        The holder's process id, as far as it is known.
    here : bool
        Whether that is the process which asked.
    """

    def __init__(self, checkpoint: str, pid: str, here: bool = False) -> None:
        super().__init__(checkpoint, pid, here)

    def __str__(self) -> str:
        checkpoint, pid, here = self.args
        if here:
            return (
                f"checkpoint {checkpoint} is in use by a run of this process, {pid}: the topology "
                "runs already. Call stop() on what its start() returned, or give this run a "
                "checkpoint and states of its own."
            )
        return (
            f"checkpoint {checkpoint} is in use by a run in process {pid or 'unknown'}. "
            "Stop that run, or give this one a checkpoint of its own."
        )


class LogError(TridentError):
    """The coordinator log and what was asked of it don't fit; the run stops."""


class CorruptLogError(LogError):
    """An entry of the log can't be read.

    Parameters
    ----------
    path : str
        The entry's file.
    found : str
        What is wrong with it.
    """

    def __init__(self, path: str, found: str) -> None:
        super().__init__(path, found)

    def __str__(self) -> str:
        path, found = self.args
        return (
            f"the log entry {path} can't be read: {found}. Don't delete it: older entries don't "
            "know what it committed. Restore it from a backup of the checkpoint, or start with a "
            "new checkpoint and adopt={'lineage': …, 'in_flight': 'committed' or 'burn'}; "
            "the states' errors name their lineage."
        )


class LogConflictError(LogError):
    """Another run has appended to the log; this one may not append any more.

    Parameters
    ----------
    place : str
        The log.
    number : int
        The entry that this run wanted to append.
    """

    def __init__(self, place: str, number: int) -> None:
        super().__init__(place, number)

    def __str__(self) -> str:
        place, number = self.args
        return (
            f"another run has written entry {number} or a later one to the log {place}: it has "
            "taken over. This run stops and changes nothing more; if both should not run, stop "
            "the other and start again."
        )


class LogUnavailableError(LogError):
    """The log's disk failed: whether an entry was added, and would stay, is not known.

    Parameters
    ----------
    place : str
        The log.
    problem : str
        What the system said.
    """

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)

    def __str__(self) -> str:
        place, problem = self.args
        return (
            f"the log {place} can't be read or written: {problem}. Make room on its disk, or "
            "repair it; nothing is built on an entry before the disk has confirmed it."
        )


class TakenOverError(LogError):
    """Another run has taken over the log, and so every state of the group.

    Parameters
    ----------
    place : str
        The log.
    own, found : str
        The id of this run, and that of the run which wrote the newest entry.
    """

    def __init__(self, place: str, own: str, found: str) -> None:
        super().__init__(place, own, found)

    def __str__(self) -> str:
        place, own, found = self.args
        return (
            f"the log {place} was taken over by the run {found}; this is {own}. This run stops "
            "and changes nothing more; two runs can't share a checkpoint."
        )


class LogMismatchError(LogError):
    """The log was written by a topology or a source of another shape.

    Parameters
    ----------
    place : str
        The log.
    what : str
        What differs.
    expected, found : object
        What the log says, and what the topology or the source says.
    advice : str
        The next step.
    """

    def __init__(self, place: str, what: str, expected: object, found: object, advice: str) -> None:
        super().__init__(place, what, expected, found, advice)

    def __str__(self) -> str:
        place, what, expected, found, advice = self.args
        return (
            f"the log {place} was written with another {what}: it has {_shown(expected)}, "
            f"found {_shown(found)}. {advice}"
        )


class PlacementError(LogError):
    """The source's log and ours disagree about which batch comes next.

    Parameters
    ----------
    place : str
        Our log.
    committed : int
        The last batch that is committed there.
    source : str
        The source's log.
    txid : int
        The batch that it offers.
    """

    def __init__(self, place: str, committed: int, source: str, txid: int) -> None:
        super().__init__(place, committed, source, txid)

    def __str__(self) -> str:
        place, committed, source, txid = self.args
        return (
            f"the log {place} has committed batch {committed}, but {source} offers batch {txid}; "
            f"only {committed} (again) or {committed + 1} can be. Files of one of the two are "
            "missing or from another time: restore both from one backup, or start with a new "
            "checkpoint and adopt=<the old one>, knowing that the source then starts as a new "
            "one does."
        )


class ReplayError(LogError):
    """The source replays a committed batch with other content.

    Parameters
    ----------
    place : str
        Our log.
    source : str
        The source's log.
    txid : int
        The batch.
    expected, found : str or None
        The digest that was committed, and that of the replay.
    """

    def __init__(
        self, place: str, source: str, txid: int, expected: str | None, found: str | None
    ) -> None:
        super().__init__(place, source, txid, expected, found)

    def __str__(self) -> str:
        place, source, txid, expected, found = self.args
        return (
            f"batch {txid} is committed in the log {place} with the digest {expected}, but "
            f"{source} replays it with {found}: it now covers other data, which would be lost or "
            "counted twice. Restore both logs from one backup."
        )


class AdoptionError(LogError):
    """The state of an older checkpoint can't be taken over as asked.

    Parameters
    ----------
    place : str
        The log that should adopt, or the one that should be adopted.
    problem : str
        What was found.
    advice : str
        The next step.
    """

    def __init__(self, place: str, problem: str, advice: str) -> None:
        super().__init__(place, problem, advice)

    def __str__(self) -> str:
        place, problem, advice = self.args
        return f"{place}: {problem}. {advice}"


class MetadataError(LogError):
    """A spout's metadata would not come back from the log as it was.

    Parameters
    ----------
    stream : str
        The stream.
    found : str
        The metadata, shortened.
    """

    def __init__(self, stream: str, found: str) -> None:
        super().__init__(stream, found)

    def __str__(self) -> str:
        stream, found = self.args
        return (
            f"the metadata of stream {stream!r} can't be logged: {found}. Allowed are None, bool, "
            "int, finite float, str, and lists and dicts (with str keys) of them."
        )


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({text})" for name, text in value.items()) or "none"
    return str(value)
