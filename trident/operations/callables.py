"""Plain callables and Spark expressions as operations.

A plain callable is called with the values of its input fields, one argument each; where no input
fields are named, ``map``, ``flatMap``, ``filter`` and ``peek`` hand it all fields. What it returns:

- ``filter``, and ``each`` without output fields: a bool;
- ``map``: the new tuple; with one field the value itself;
- ``withColumn``: the value of the new field;
- ``flatMap``, and ``each`` with output fields: an iterable, or None for nothing. With one output
  field each item is a value (a list is an array, a tuple is a row: ``(v,)`` is ``v``); with
  several each item is a tuple or list of that many values.

A function whose result differs when a batch is replayed says so by an attribute ``deterministic``
that is False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from trident.errors import EmittedValueError, OperationTypeError, described
from trident.operations.annotations import (
    callable_name,
    item_annotation,
    known_type,
    return_annotation,
    row_types,
)
from trident.operations.interfaces import (
    Consumer,
    Filter,
    FlatMapFunction,
    MapFunction,
    PlainFunction,
)
from trident.tuples import TridentTuple
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class Native:
    """A Spark SQL expression in place of a function; see `native`.

    `expression` is SQL, or a callable of no arguments that makes a ``Column``.
    """

    expression: str | Callable[[], Any]
    deterministic: bool = True

    @property
    def label(self) -> str:
        """The expression for plans and errors."""
        if isinstance(self.expression, str):
            return f"native({self.expression!r})"
        return f"native({callable_name(self.expression)})"


def native(expression: str | Callable[[], Any], *, deterministic: bool = True) -> Native:
    """A Spark expression in place of a function; the topology then runs on Spark only.

    Parameters
    ----------
    expression : str or callable
        Spark SQL over the stream's fields, or a callable of no arguments that makes a ``Column``
        (called on the driver, when there is a session). A generator makes several tuples.
    deterministic : bool
        False for expressions like ``uuid()``, whose result differs when a batch is replayed.

    Examples
    --------
    >>> native("explode(split(sentence, ' '))").label
    'native("explode(split(sentence, \\' \\'))")'
    """
    if isinstance(expression, str) and expression.strip():
        return Native(expression, deterministic)
    if callable(expression) and not isinstance(expression, type):
        return Native(expression, deterministic)
    advice = 'Write native("upper(word)") or native(lambda: F.upper("word")).'
    what = "native: expected an expression, found"
    raise OperationTypeError(what, described(expression), (), advice)


@dataclass(frozen=True)
class Adapted:
    """A plain callable as an operation: has its name, and takes values instead of a tuple.

    What it returns is checked by `trident.kernels.tuple_kernels`, for a whole column at once.
    """

    function: Callable[..., Any]
    positional = True

    def __post_init__(self) -> None:
        deterministic = getattr(self.function, "deterministic", True)
        object.__setattr__(self, "deterministic", bool(deterministic))

    def __deepcopy__(self, memo: object) -> Self:
        return self  # there is nothing to prepare, so partitions may share it

    @cached_property
    def label(self) -> str:
        """The callable's name for plans and errors."""
        return callable_name(self.function)


class CallableFunction(Adapted, PlainFunction):
    """A plain callable as a function."""

    def expand(self, *inputs: Any) -> Iterable[Any]:
        made: Iterable[Any] = self.function(*inputs)
        return made

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        return row_types(item_annotation(return_annotation(self.function)))


class CallableColumn(Adapted, PlainFunction):
    """A plain callable for ``withColumn``: what it returns is the value."""

    def expand(self, *inputs: Any) -> Iterable[Any]:
        return [self.function(*inputs)]

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        return [known_type(return_annotation(self.function))]


class CallableFilter(Adapted, Filter):
    """A plain callable as a filter."""

    def isKeep(self, tuple: TridentTuple) -> bool:
        return check_bool(self.label, self.function(*tuple))


class CallableMap(Adapted, MapFunction):
    """A plain callable for ``map``; with one output field it may return the value itself."""

    def execute(self, tuple: TridentTuple) -> Sequence[Any]:
        made: Sequence[Any] = self.function(*tuple)
        return made

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        return row_types(return_annotation(self.function))


class CallableFlatMap(Adapted, FlatMapFunction):
    """A plain callable for ``flatMap``; with one output field it may return the values."""

    def execute(self, tuple: TridentTuple) -> Iterable[Sequence[Any]]:
        made: Iterable[Sequence[Any]] = self.function(*tuple)
        return made

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        return row_types(item_annotation(return_annotation(self.function)))


class CallableConsumer(Adapted, Consumer):
    """A plain callable for ``peek``."""

    def accept(self, tuple: TridentTuple) -> None:
        self.function(*tuple)


def check_bool(operation: str, kept: object) -> bool:
    """Check that a plain callable returned a bool, as a filter has to."""
    if isinstance(kept, bool):
        return kept
    problem = f"returned {described(kept)}, where a filter returns a bool"
    raise EmittedValueError(operation, problem)
