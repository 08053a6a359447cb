"""The errors that users meet; those of states are defined in `trident.states.errors`."""

from __future__ import annotations

from dataclasses import dataclass

from trident.operation_error import OperationError
from trident.states.errors import (
    BackingMapError,
    CopiedLogError,
    CopyError,
    CorruptStateError,
    FailedException,
    GivenBackError,
    KeyTypeError,
    LongOverflowError,
    LostPlanError,
    LostStateError,
    LostWritesError,
    MissingDriverError,
    NoStateError,
    OtherLogError,
    RewoundStateError,
    SerializationError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
    StateURLError,
    TridentError,
    UnavailableError,
    UnfinishedCopyError,
    UnownedStateError,
    UsageError,
)
from trident.states.secrets import masked

__all__ = [
    "BackingMapError",
    "CopiedLogError",
    "CopyError",
    "CorruptStateError",
    "DuplicateNameError",
    "EmittedValueError",
    "FailedException",
    "FieldError",
    "GivenBackError",
    "GuaranteeWarning",
    "KeyTypeError",
    "LongOverflowError",
    "LostPlanError",
    "LostStateError",
    "LostWritesError",
    "MissingDriverError",
    "NoStateError",
    "OperationError",
    "OperationTypeError",
    "OtherLogError",
    "PlanError",
    "RewoundStateError",
    "SerializationError",
    "SourceUnavailableError",
    "SpoutPartitionError",
    "StaleBatchError",
    "StateError",
    "StateURLError",
    "StateUnavailableError",
    "TridentError",
    "UnavailableError",
    "UnfinishedCopyError",
    "UnownedStateError",
    "UsageError",
    "ValueTypeError",
]


class PlanError(UsageError):
    """A call that builds or starts a topology is wrong; nothing was added to the plan.

    The parameters are those of :class:`~trident.states.errors.UsageError`.

    Examples
    --------
    >>> raise PlanError("each: unknown field", "sentense", ["id", "sentence"])
    Traceback (most recent call last):
    ...
    trident.errors.PlanError: each: unknown field 'sentense'; there are: id, sentence.
    Did you mean 'sentence'?
    """


class FieldError(PlanError):
    """A field is unknown, given twice, already there, or has no usable type."""


class OperationTypeError(PlanError):
    """An argument is not the operation, aggregator or state that was expected, or doesn't fit."""


class DuplicateNameError(PlanError):
    """A name is taken: of a stream, a state or a query; or a state is updated twice."""


@dataclass(eq=False, repr=False)
class EmittedValueError(TridentError):
    """An operation returned or emitted something that does not fit its declared outputs."""

    operation: str
    """The operation."""
    problem: str
    """What it emitted, and what is allowed."""

    _template = "{operation} {problem}"


@dataclass(eq=False, repr=False)
class ValueTypeError(TridentError, TypeError):
    """A value is not of the type that an operation or a typed access needs."""

    what: str
    """Which operation or access."""
    allowed: str
    """The types it takes."""
    found: str
    """The value, as `described` tells it."""

    _template = "{what} needs {allowed}, found {found}"


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


def described(value: object) -> str:
    """A value for an error's text: its type and, shortened, itself.

    Examples
    --------
    >>> described("cat")
    "str 'cat'"
    """
    return f"{type(value).__name__} {masked(repr(value)):.200}"


class GuaranteeWarning(UserWarning):
    """A state can't be exact with the source that feeds it, or is lost before its checkpoint."""
