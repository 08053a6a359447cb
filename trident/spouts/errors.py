"""Errors of spouts."""

from __future__ import annotations

from dataclasses import dataclass

from trident.states.errors import FailedException, TridentError


@dataclass(eq=False, repr=False)
class SourceUnavailableError(FailedException):
    """A source, or a partition of it, can't be reached now.

    A batch of a transactional stream waits for it, as long as ``patience`` allows, and counts
    toward no ``retries``. One of an opaque stream goes on without a partition that is away.

    Parameters
    ----------
    source : str
        Which source: stream and partition, host and port or path, never a password.
    problem : str
        What was found.
    advice : str
        The next step.
    """

    source: str
    problem: str
    advice: str = ""

    def __str__(self) -> str:
        text = f"{self.source}: {self.problem}."
        return f"{text} {self.advice}" if self.advice else text


@dataclass(eq=False, repr=False)
class SpoutPartitionError(TridentError):
    """A spout tells of its partitions what can't be."""

    stream: str
    """The stream."""
    problem: str
    """What was found."""
    advice: str
    """The next step."""

    _template = "the spout of stream {stream!r}: {problem}. {advice}"
