"""Errors that stop a group although its log and its states are in order."""

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
    """The error of the last one."""
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
    """How many of the last tuples steps have failed with."""
    tried: int
    """How many tuples they were given lately."""
    most: float
    """The allowed share."""

    _template = (
        "steps of {group} have failed with {bad:,} of the last {tried:,} tuples they were given, "
        "and max_errors= allows {most:g} of them, or of 1,000 if they are fewer. Batch {txid} is "
        "kept: the next start tries it again. The log and the dead letters show the failures: "
        "remove their cause; or allow more with max_errors=."
    )


@dataclass(eq=False, repr=False)
class OutageError(TridentError):
    """A store or the log's disk was away for longer than `patience`; the batch is kept."""

    what: str
    """The batch that had to wait, and its group."""
    seconds: float
    """How long it waited."""
    failure: str
    """The error of the last try."""

    passing: ClassVar[bool] = True
    _template = (
        "{what} waited {seconds:.1f} s, as long as patience= allows, and the last try failed too: "
        "{failure} Nothing was given up: remove the cause, and start again, which goes on with "
        "this batch; or allow more seconds with patience=."
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
    """A failure policy that these states don't allow."""

    problem: str
    """The policy, and the states."""
    advice: str

    _template = "{problem}. {advice}"
