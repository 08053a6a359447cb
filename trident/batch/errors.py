"""Why a group stops where the log and the states are in order."""

from __future__ import annotations

from trident.states.errors import TridentError


class BatchFailedError(TridentError):
    """A batch failed in every attempt; it is kept, and the next start tries it again.

    Parameters
    ----------
    group : str
        The batch group.
    txid : int
        The batch.
    attempts : int
        How many attempts this run made.
    failure : str
        What the last one failed with.
    advice : str
        The next step.
    """

    def __init__(self, group: str, txid: int, attempts: int, failure: str, advice: str) -> None:
        super().__init__(group, txid, attempts, failure, advice)

    def __str__(self) -> str:
        group, txid, attempts, failure, advice = self.args
        return (
            f"batch {txid} of {group} failed {attempts} times, last with: {failure}. It is kept: "
            f"the next start tries it again. {advice}"
        )


class OutageError(TridentError):
    """A store or the log's disk was away for longer than `patience`; the batch is kept.

    Parameters
    ----------
    what : str
        What had to wait: the batch and its group.
    seconds : float
        How long it waited.
    failure : str
        What the last try failed with, and where.
    """

    def __init__(self, what: str, seconds: float, failure: str) -> None:
        super().__init__(what, seconds, failure)

    def __str__(self) -> str:
        what, seconds, failure = self.args
        return (
            f"{what} waited {seconds:.1f} s, as long as patience= allows, and it is still so: "
            f"{failure} Nothing was given up: remove the cause, and start again, which goes on "
            "where this run stopped; or allow more seconds with patience=."
        )


class BatchInterruptedError(TridentError):
    """The run was asked to stop while a batch waited for its next try; it is kept.

    Parameters
    ----------
    group : str
        The batch group.
    txid : int
        The batch.
    """

    def __init__(self, group: str, txid: int) -> None:
        super().__init__(group, txid)

    def __str__(self) -> str:
        group, txid = self.args
        return (
            f"the run stopped while batch {txid} of {group} waited. It is kept: the next start "
            "goes on with it."
        )


class FailurePolicyError(TridentError, ValueError):
    """``on_failure``, ``retries`` or ``patience`` can't be what it was given as.

    Parameters
    ----------
    problem : str
        What was given, and for which state.
    advice : str
        What is allowed.
    """

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem, advice)

    def __str__(self) -> str:
        problem, advice = self.args
        return f"{problem}. {advice}"
