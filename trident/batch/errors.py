"""Why a group stops although its log and its states are in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trident.states.errors import TridentError


@dataclass(eq=False, repr=False)
class BatchFailedError(TridentError):
    """A batch failed in every attempt; it is kept, and the next start tries it again."""

    group: str
    txid: int
    attempts: int
    """How many attempts this run made."""
    failure: str
    """What the last one failed with."""
    advice: str

    _template = (
        "batch {txid} of {group} failed {attempts} times, last with: {failure}. It is kept: "
        "the next start tries it again. {advice}"
    )


@dataclass(eq=False, repr=False)
class TooManyBadTuplesError(TridentError):
    """More of the last tuples are bad than ``max_errors=`` allows; the batch is kept."""

    group: str
    """The batch group."""
    txid: int
    """The batch."""
    bad: int
    """How many tuples steps have failed with."""
    tried: int
    """Of how many that they were given lately."""
    most: float
    """The share that is allowed."""

    _template = (
        "steps of {group} have failed with {bad:,} of the last {tried:,} tuples they were given, "
        "and max_errors= allows {most:g} of them, or of 1,000 if they are fewer. Batch {txid} is "
        "kept: the next start tries it again. Look at what the steps fail with, which the log and "
        "the dead letters tell, and mend it; or allow more with max_errors=."
    )


@dataclass(eq=False, repr=False)
class OutageError(TridentError):
    """A store or the log's disk was away for longer than `patience`; the batch is kept."""

    what: str
    """What had to wait: the batch and its group."""
    seconds: float
    """How long it waited."""
    failure: str
    """What the last try failed with, and where."""

    passing: ClassVar[bool] = True
    _template = (
        "{what} waited {seconds:.1f} s, as long as patience= allows, and it is still so: "
        "{failure} Nothing was given up: remove the cause, and start again, which goes on "
        "where this run stopped; or allow more seconds with patience=."
    )


@dataclass(eq=False, repr=False)
class BatchInterruptedError(TridentError):
    """The run was asked to stop while a batch waited for its next try; it is kept."""

    group: str
    txid: int

    _template = (
        "the run stopped while batch {txid} of {group} waited. It is kept: the next start "
        "goes on with it."
    )


@dataclass(eq=False, repr=False)
class FailurePolicyError(TridentError, ValueError):
    """A failure policy that can't be followed with these states."""

    problem: str
    """What was given, and for which state."""
    advice: str

    _template = "{problem}. {advice}"
