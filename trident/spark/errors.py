"""What can go wrong between this library and Spark."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

from trident.states.errors import TridentError

_UNRESOLVED = ("UNRESOLVED_ROUTINE", "TABLE_OR_VIEW_NOT_FOUND")
_UNSEEN = (
    "Batches of spouts, and queries, run in a session of their own, which has the settings of "
    "yours, but not its temporary views and functions: make permanent or global ones."
)
_WORKERS = (
    "Workers need the same minor version of Python as the driver, this package, and what it "
    "needs. Set PYSPARK_PYTHON={} before the session is made; or pip install trident-spark into "
    "the workers' own; or send a whole environment with --archives. (--py-files brings the "
    "package alone, without the compiled packages that it needs, as orjson and pyarrow.)"
)


@dataclass(eq=False, repr=False)
class SparkSessionError(TridentError):
    """A session can't be made or used."""

    found: str
    advice: str

    _template = "{found}. {advice}"


@dataclass(eq=False, repr=False)
class EngineLostError(TridentError):
    """Spark has ended before the run did; batches that were under way are kept."""

    found: str

    passing: ClassVar[bool] = True
    _template = (
        "Spark is gone: {found}. The next start, in a new process, tries batches again that were "
        "under way. Its own log, or that of the system or the cluster, may say why it ended: often "
        "memory was short."
    )


@dataclass(eq=False, repr=False)
class WorkerError(TridentError):
    """Spark's Python workers can't run what this program sends them; nothing was started."""

    found: str

    def __str__(self) -> str:
        return f"{self.found}. {_WORKERS.format(sys.executable)}"


@dataclass(eq=False, repr=False)
class StatusError(TridentError):
    """A status was not written by a task of this attempt; the batch is kept."""

    found: str
    """The beginning of what was found in its place."""

    _template = (
        "expected the status of a task, found {found!r}. "
        "The batch is kept: the next start tries it again."
    )

    def __post_init__(self) -> None:
        self.found = self.found[:200]
        super().__post_init__()


@dataclass(eq=False, repr=False)
class SparkFailure(TridentError):
    """Spark refused or failed to run a batch, which is kept, or a request."""

    condition: str
    message: str
    """What Spark says, without its stack traces."""
    work: str = "batch"
    """What it was to run: a batch, or a request."""

    def __str__(self) -> str:
        shown = "\n".join(f"{line:.300}" for line in self.message.strip().splitlines()[:10])
        text = f"Spark could not run the {self.work} ({self.condition}): {shown}"
        return f"{text}\n{_UNSEEN}" if self.condition in _UNRESOLVED else text
