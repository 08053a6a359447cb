"""What can go wrong between this library and Spark."""

from __future__ import annotations

import sys

from trident.states.errors import TridentError

_UNRESOLVED = ("UNRESOLVED_ROUTINE", "TABLE_OR_VIEW_NOT_FOUND")
_UNSEEN = (
    "Batches of spouts run in a session of their own, which has the settings of yours, but not "
    "its temporary views and functions: make permanent or global ones."
)
_WORKERS = (
    "Workers need the same minor version of Python as the driver, this package, and what it "
    "needs. Set PYSPARK_PYTHON={} before the session is made; or pip install trident-spark into "
    "the workers' own; or send a whole environment with --archives. (--py-files brings the "
    "package alone, not what it needs, of which orjson and pyarrow are compiled.)"
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


class WorkerError(TridentError):
    """Spark's Python workers can't run what this program sends them; nothing was started.

    Parameters
    ----------
    found : str
        What was found.
    """

    def __init__(self, found: str) -> None:
        super().__init__(found)

    def __str__(self) -> str:
        [found] = self.args
        return f"{found}. {_WORKERS.format(sys.executable)}"


class StatusError(TridentError):
    """What a task told of its update is not from a task of this attempt; the batch is kept.

    Parameters
    ----------
    found : str
        The beginning of what was found in its place.
    """

    def __init__(self, found: str) -> None:
        super().__init__(found[:200])

    def __str__(self) -> str:
        [found] = self.args
        return (
            f"a task that updates a state was expected to tell how that went, found {found!r}. "
            "The batch is kept: the next start tries it again."
        )


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
        shown = "\n".join(f"{line:.300}" for line in message.strip().splitlines()[:10])
        text = f"Spark could not run the batch ({condition}): {shown}"
        return f"{text}\n{_UNSEEN}" if condition in _UNRESOLVED else text
