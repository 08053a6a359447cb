"""What can happen to a batch of a spout the first time it is emitted, for tests of topologies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from trident.states.errors import FailedException


class SimulatedCrash(BaseException):
    """The driver is gone, as far as a test is concerned.

    No `Exception`: nothing but who plays the next driver catches it.
    """


class Incident(ABC):
    """Happens once, where it stands among the tuples of a spout: to the batch that it is in."""

    @abstractmethod
    def happen(self) -> None:
        """Raise what it is."""


class Fail(Incident):
    """The attempt fails, and the batch is emitted again.

    Examples
    --------
    >>> from trident import FixedBatchSpout
    >>> spout = FixedBatchSpout("word string", 2, ("the",), ("cow",), Fail(), ("jumped",))
    """

    def happen(self) -> None:
        raise FailedException("a Fail() stands in this batch")


class Crash(Incident):
    """The run ends as if it was killed; started again, it emits the batch again."""

    def happen(self) -> None:
        raise SimulatedCrash("a Crash() stands in this batch")


class Replay(Incident):
    """The attempt fails, and the batch is emitted again: with the same tuples, or with others.

    Parameters
    ----------
    other : sequence of sequence, optional
        The tuples that it holds then. A spout with such a batch is opaque.
    """

    def __init__(self, other: Sequence[Sequence[Any]] | None = None) -> None:
        self.other = other

    def happen(self) -> None:
        raise FailedException("a Replay() stands in this batch")
