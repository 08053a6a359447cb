"""Errors of spouts."""

from __future__ import annotations

from dataclasses import dataclass

from trident.states.errors import TridentError, UnavailableError


class SourceUnavailableError(UnavailableError):
    """A source, or a partition of it, can't be reached now.

    A batch of a transactional stream waits for it, as long as ``patience`` allows, and counts
    toward no ``retries``. One of an opaque stream goes on without a partition that is away. The
    parameters are those of :class:`~trident.states.errors.UnavailableError`.
    """


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
