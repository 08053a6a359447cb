"""The errors that users meet; those of states are defined in `trident.states.errors`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trident.operation_error import OperationError as OperationError
from trident.states.errors import BackingMapError as BackingMapError
from trident.states.errors import CopiedLogError as CopiedLogError
from trident.states.errors import CopyError as CopyError
from trident.states.errors import CorruptStateError as CorruptStateError
from trident.states.errors import FailedException as FailedException
from trident.states.errors import GivenBackError as GivenBackError
from trident.states.errors import KeyTypeError as KeyTypeError
from trident.states.errors import LongOverflowError as LongOverflowError
from trident.states.errors import LostPlanError as LostPlanError
from trident.states.errors import LostStateError as LostStateError
from trident.states.errors import LostWritesError as LostWritesError
from trident.states.errors import MissingDriverError as MissingDriverError
from trident.states.errors import MovedStateError as MovedStateError
from trident.states.errors import NoStateError as NoStateError
from trident.states.errors import OtherLogError as OtherLogError
from trident.states.errors import RewoundStateError as RewoundStateError
from trident.states.errors import SerializationError as SerializationError
from trident.states.errors import StaleBatchError as StaleBatchError
from trident.states.errors import StateError as StateError
from trident.states.errors import StateUnavailableError as StateUnavailableError
from trident.states.errors import StateURLError as StateURLError
from trident.states.errors import TridentError as TridentError
from trident.states.errors import UnavailableError as UnavailableError
from trident.states.errors import UnfinishedCopyError as UnfinishedCopyError
from trident.states.errors import UnownedStateError as UnownedStateError
from trident.states.errors import UsageError as UsageError
from trident.states.printable import masked


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
class BadRowsError(TridentError):
    """A function of record batches says which rows it can't take; see ``on_error=`` of `flatMap`.

    It is called again with the others.

    Examples
    --------
    >>> raise BadRowsError({2: "no number"})
    Traceback (most recent call last):
    ...
    trident.errors.BadRowsError: bad rows of a record batch: {2: 'no number'}
    """

    rows: Mapping[int, str]
    """What is wrong with a row, by its position in the record batch, from 0."""

    _template = "bad rows of a record batch: {rows}"


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


__all__ = sorted(
    name
    for name, found in vars().items()
    if isinstance(found, type) and issubclass(found, Exception)
)
