"""What can go wrong between this library and Spark."""

from __future__ import annotations

from trident.states.errors import TridentError

_UNRESOLVED = ("UNRESOLVED_ROUTINE", "TABLE_OR_VIEW_NOT_FOUND")
_UNSEEN = (
    "Batches of spouts run in a session of their own, which has the settings of yours, but not "
    "its temporary views and functions: make permanent or global ones."
)


class SparkSessionError(TridentError):
    """A session can't be made or used.

    Parameters
    ----------
    found : str
        What was found.
    advice : str
        The next step.
    """

    def __init__(self, found: str, advice: str) -> None:
        super().__init__(found, advice)

    def __str__(self) -> str:
        found, advice = self.args
        return f"{found}. {advice}"


class SparkFailure(TridentError):
    """Spark refused or failed to run a batch; the batch is kept.

    Parameters
    ----------
    condition : str
        Spark's error condition.
    message : str
        What Spark says, without its stack traces.
    """

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(condition, message)

    def __str__(self) -> str:
        condition, message = self.args
        shown = "\n".join(message.strip().splitlines()[:10])
        text = f"Spark could not run the batch ({condition}): {shown}"
        return f"{text}\n{_UNSEEN}" if condition in _UNRESOLVED else text
