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


class BatchInterruptedError(TridentError):
    """The run was asked to stop while a failed batch waited for its next attempt; it is kept.

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
            f"the run stopped while batch {txid} of {group} waited for its next attempt. It is "
            "kept: the next start tries it again."
        )


class FailurePolicyError(TridentError, ValueError):
    """``on_failure`` or ``retries`` can't be what it was given as.

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
