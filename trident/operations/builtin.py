"""The operations that come with the library; all of them are positional and pickle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from trident.errors import LongOverflowError, OperationTypeError, ValueTypeError, described
from trident.operations.callables import CallableFilter
from trident.operations.interfaces import (
    CombinerAggregator,
    Filter,
    PlainFunction,
    QueryFunction,
    TridentCollector,
    operation_name,
)
from trident.states.asking import Wait
from trident.states.map_state import ReadOnlyMapState
from trident.tuples import TridentTuple
from trident.tuples.field_types import parts
from trident.tuples.fields import Fields
from trident.tuples.value_types import decimal_of_sum

if TYPE_CHECKING:
    from trident.states.map_state import ITupleCollection, ReadOnlySnapshottable

_EXACT = Context(prec=2 * 38)  # Python's own context rounds to 28 digits, and Spark keeps 38
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_WHOLE = ("long", "int", "short", "byte")
_NUMERIC = (*_WHOLE, "double", "float")
S = TypeVar("S")


class Count(CombinerAggregator[int]):
    """The number of tuples, null or not.

    Examples
    --------
    >>> Count().combine(Count().init(()), Count().zero())
    1
    """

    positional = True
    adds = True
    output_types = (int,)

    def init(self, tuple: Sequence[Any]) -> int:
        return 1

    def combine(self, a: int, b: int) -> int:
        total: int = _check_long("Count()", a + b)
        return total

    def zero(self) -> int:
        return 0


class Sum(CombinerAggregator[Any]):
    """The sum of one numeric field: null counts for nothing, and no tuple makes 0.

    Raises
    ------
    LongOverflowError
        When integers sum up to more than 64 bits.
    ValueTypeError
        For a value that is no number.

    Examples
    --------
    >>> Sum().combine(Sum().init((2,)), Sum().init((None,)))
    2
    """

    positional = True
    adds = True
    arity = 1

    def init(self, tuple: Sequence[Any]) -> Any:
        value = tuple[0]
        if value is None:
            return 0
        if type(value) in (int, float):
            return value + 0  # 0.0 for -0.0: the sum begins with 0
        if isinstance(value, Decimal):
            return value
        raise ValueTypeError("Sum()", "numbers (int, float, Decimal)", described(value))

    def combine(self, a: Any, b: Any) -> Any:
        if isinstance(a, Decimal) or isinstance(b, Decimal):
            return _EXACT.add(_decimal(a), _decimal(b))
        return _check_long("Sum()", a + b)

    def zero(self) -> int:
        return 0

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        [(name, kind)] = inputs.types.items()
        if kind is None or kind.startswith("decimal"):
            return [kind and decimal_of_sum(kind)]
        if kind not in _NUMERIC:
            advice = f"Field {name!r} is declared {kind}."
            raise OperationTypeError("Sum() adds numbers, not", kind, _NUMERIC, advice)
        return ["long" if kind in _WHOLE else "double"]


class Min(CombinerAggregator[Any]):
    """The smallest value of one field; null counts for nothing, and no tuple makes null.

    NaN is greater than any number, as in Spark.

    Examples
    --------
    >>> Min().combine(3, 2), Min().combine(None, 2), Min().zero()
    (2, 2, None)
    """

    positional = True
    arity = 1

    def init(self, tuple: Sequence[Any]) -> Any:
        return tuple[0]

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return b if b < a or a != a else a

    def zero(self) -> None:
        return None

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        [(name, kind)] = inputs.types.items()
        if kind is not None and parts(kind).kinds:
            advice = f"Field {name!r} is declared {kind}."
            what = f"{type(self).__name__}() compares numbers, text, dates and the like, not"
            raise OperationTypeError(what, kind, (), advice)
        return [kind]


class Max(Min):
    """The greatest value of one field; null counts for nothing, and no tuple makes null.

    NaN is greater than any number, as in Spark.

    Examples
    --------
    >>> Max().combine(3, 2), Max().combine(None, 2), Max().zero()
    (3, 2, None)
    """

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return b if b > a or b != b else a


class Split(PlainFunction):
    """The words of a string, which white space separates; null has none.

    Examples
    --------
    >>> list(Split().expand("  the quick  fox "))
    ['the', 'quick', 'fox']
    """

    output_types = (str,)

    def expand(self, text: str | None) -> Sequence[str]:
        if type(text) is str:
            return text.split()
        if text is None:
            return ()
        raise ValueTypeError("Split()", "a string", described(text))


class FilterNull(Filter):
    """Drops tuples with a null among the input fields.

    Examples
    --------
    >>> FilterNull().isKeep(("a", None))
    False
    """

    positional = True

    def isKeep(self, tuple: Sequence[Any]) -> bool:
        return all(value is not None for value in tuple)


class Equals(Filter):
    """Keeps tuples whose input fields are all equal; null equals null.

    Examples
    --------
    >>> Equals().isKeep((1, 1)), Equals().isKeep((1, 2))
    (True, False)
    """

    positional = True

    def isKeep(self, tuple: Sequence[Any]) -> bool:
        return all(a == b for a, b in pairwise(tuple))


class Negate(Filter):
    """Keeps what another filter drops.

    Parameters
    ----------
    filter : Filter or callable
        The other one.

    Examples
    --------
    >>> Negate(FilterNull()).isKeep(("a", None)), Negate(str.isupper).isKeep(("a",))
    (True, True)
    """

    def __init__(self, filter: Filter | Callable[..., bool]) -> None:
        if isinstance(filter, type) or not (isinstance(filter, Filter) or callable(filter)):
            advice = "Write Negate(FilterNull()), or hand it a function that returns a bool."
            what = "Negate: expected a filter, found"
            raise OperationTypeError(what, described(filter), (), advice)
        self.filter = filter if isinstance(filter, Filter) else CallableFilter(filter)
        self._wrapped = (self.filter,)
        self.deterministic = self.filter.deterministic
        self.positional = self.filter.positional
        self.label = f"Negate({operation_name(self.filter)})"

    def isKeep(self, tuple: TridentTuple) -> bool:
        return not self.filter.isKeep(tuple)


class Debug(Filter):
    """Prints every tuple where it runs, and keeps it.

    Parameters
    ----------
    name : str
        What the lines begin with.

    Examples
    --------
    >>> Debug("words").isKeep(("cat", 1))
    DEBUG(words): ('cat', 1)
    True
    """

    positional = True

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.label = f"Debug({name!r})" if name else "Debug()"

    def isKeep(self, tuple: Sequence[Any]) -> bool:
        head = f"DEBUG({self.name})" if self.name else "DEBUG"
        print(f"{head}: {tuple!r}")
        return True


class _OneResult(QueryFunction[S, Any]):
    """A query that appends what it retrieves for a tuple."""

    positional = True

    def execute(self, tuple: Sequence[Any], result: Any, collector: TridentCollector) -> None:
        collector.emit((result,))

    def infer_state_types(self, inputs: Fields, stored: Fields) -> Sequence[str | None]:
        return list(stored.types.values())[-1:]


class MapGet(_OneResult["ReadOnlyMapState"]):
    """The state's value for the key that the input fields make; null where there is none."""

    queries = "multiGet"

    def batchRetrieve(
        self, state: ReadOnlyMapState, tuples: Sequence[Sequence[Any]]
    ) -> Sequence[Any]:
        return state.multiGet(list(map(tuple, tuples)))

    def ask(self, state: Any, tuples: Sequence[Sequence[Any]]) -> Wait[Sequence[Any]]:
        """Ask for the same, and return what waits for it."""
        if isinstance(state, ReadOnlyMapState):
            return state.ask(list(map(tuple, tuples)))
        return partial(self.batchRetrieve, state, tuples)


class SnapshotGet(_OneResult["ReadOnlySnapshottable"]):
    """The one value of an ungrouped state, for each tuple."""

    queries = "get"

    def batchRetrieve(
        self, state: ReadOnlySnapshottable, tuples: Sequence[Sequence[Any]]
    ) -> Sequence[Any]:
        return [state.get()] * len(tuples)


class TupleCollectionGet(QueryFunction["ITupleCollection", Any]):
    """Every key and value of the state, for each tuple."""

    positional = True
    queries = "getTuples"

    def batchRetrieve(
        self, state: ITupleCollection, tuples: Sequence[Sequence[Any]]
    ) -> Sequence[Any]:
        return [list(state.getTuples())] * len(tuples)

    def execute(self, tuple: Sequence[Any], result: Any, collector: TridentCollector) -> None:
        for stored in result:
            collector.emit(stored)

    def infer_state_types(self, inputs: Fields, stored: Fields) -> Sequence[str | None]:
        return list(stored.types.values())


def _check_long(operation: str, value: Any) -> Any:
    if type(value) is int and not _LONG_MIN <= value <= _LONG_MAX:
        raise LongOverflowError(operation, value)
    return value


def _decimal(value: Any) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(str(value))
