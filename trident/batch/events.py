"""The events of a batch group that listeners receive."""

from __future__ import annotations

from dataclasses import dataclass

from trident.batch.progress import BatchProgress

__all__ = ["AttemptFailed", "GroupEnded", "GroupStarted", "QueryEnded"]


@dataclass(frozen=True, slots=True)
class GroupStarted:
    """A group's log is open, and batches begin.

    Parameters
    ----------
    group : str
        The batch group.
    txid : int
        The batch that is due.
    attempt : int
        Its next attempt; more than 0 if an earlier run has had it before.
    recovered : bool
        Whether the log existed already: the group continues an earlier run.
    under_way : bool
        Whether that run had begun the batch that is due, and was killed, or failed, within it.
    at : float
        When, in seconds since 1970.

    Examples
    --------
    >>> print(GroupStarted("words", 8, 1, recovered=True, under_way=True, at=0.0).text)
    words goes on after batch 7; batch 8 was under way, and is tried again as attempt 1
    """

    group: str
    txid: int
    attempt: int
    recovered: bool
    under_way: bool
    at: float

    @property
    def text(self) -> str:
        """The event in one line for a person."""
        if not self.recovered:
            return f"{self.group} begins with batch {self.txid}"
        after = f"after batch {self.txid - 1}" if self.txid > 1 else "from its beginning"
        due = f"batch {self.txid} was under way, and is tried again as attempt {self.attempt}"
        return f"{self.group} goes on {after}{f'; {due}' if self.under_way else ''}"


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """An attempt of a batch has failed; another one follows, or the group ends.

    Parameters
    ----------
    group : str
        The batch group.
    txid, attempt : int
        Which attempt.
    reason : str
        One of `trident.figures.reasons.REASONS`.
    error : str
        The class of its error.
    message : str
        Its text, shortened; never a tuple.
    frame : str or None
        The user's innermost frame; None if no code of theirs has raised it.
    seconds : float
        How long the attempt took.
    at : float
        When it failed, in seconds since 1970.
    """

    group: str
    txid: int
    attempt: int
    reason: str
    error: str
    message: str
    frame: str | None
    seconds: float
    at: float


@dataclass(frozen=True, slots=True)
class GroupEnded:
    """No batch of the group will follow in this run.

    Parameters
    ----------
    group : str
        The batch group.
    status : str
        ``"stopped"`` or ``"failed"``.
    reason, error, message : str or None
        Its failure, as of an `AttemptFailed`; None if it was stopped.
    at : float
        When, in seconds since 1970.
    """

    group: str
    status: str
    reason: str | None
    error: str | None
    message: str | None
    at: float


@dataclass(frozen=True, slots=True)
class QueryEnded:
    """A call of a query has ended; for listeners of `run.drpc`.

    Parameters
    ----------
    function : str
        The name given to ``newDRPCStream``.
    seconds : float
        How long the caller has waited.
    error : str or None
        The class of the error it ended with; None if it was answered.
    """

    function: str
    seconds: float
    error: str | None


Event = GroupStarted | BatchProgress | AttemptFailed | GroupEnded
"""What a listener receives; a `BatchProgress` is a finished batch."""
