"""What a user writes: functions, filters, aggregators, updaters and queries.

Each partition of a step has an operation of its own. On Spark it is pickled to every task, so once
a batch and partition, and prepared there before the first tuple. The local engine makes a copy
(``copy.deepcopy``) for each partition, prepared once a run; where a step has one partition only, it
is the object that the topology was given.

A batch may be tried again, so every operation may see a tuple more than once. Raise
`FailedException` to fail the attempt; any other exception stops the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from trident.operations.absent_calls import Published
from trident.operations.counters import Counter, CounterBook
from trident.tuples import TridentTuple
from trident.tuples.field_types import ddl_type
from trident.tuples.fields import Fields

A = TypeVar("A")
R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True)
class TridentOperationContext(Published):
    """Where an operation runs: the partition, of how many, and what operations count there."""

    _partition: int
    _partitions: int
    _counters: CounterBook = field(default_factory=CounterBook, compare=False, repr=False)

    def getPartitionIndex(self) -> int:
        """The partition, from 0."""
        return self._partition

    def numPartitions(self) -> int:
        """How many partitions there are."""
        return self._partitions

    def registerCounter(self, name: str) -> Counter:
        """A counter for ``prepare`` to keep; the batch's ``BatchProgress.counters`` has its total.

        Counters of one name count together, whatever operations have them. A task that Spark ran
        again has counted twice, and batches that run at once may count for one another: a state is
        exact, a counter is not.
        """
        return self._counters.counter(name)


class TridentCollector(Published, ABC):
    """Takes what an operation emits."""

    @abstractmethod
    def emit(self, values: Sequence[Any]) -> None:
        """Emit one tuple: a list or tuple with a value for each output field.

        Raises
        ------
        EmittedValueError
            When it is no list or tuple, or has another length.
        """


class Operation:
    """What all operations share.

    Attributes
    ----------
    deterministic : bool
        Whether the same input always gives the same output. Declare False where it does not
        (clocks, random numbers, look-ups elsewhere): what it emitted is then kept for the whole
        attempt, and a transactional stream counts as opaque from there on.
    positional : bool
        Whether the operation reads tuples by position only; engines then hand it plain tuples.
    output_types : sequence or None
        Types of the outputs, as `Fields` takes them.
    identity : str, callable or None
        Of an aggregator or updater, the parameters that decide what a state holds, as text, or a
        method that returns this text. The log keeps it with the class; a start with another one is
        refused.
    schema_version : int
        Of an aggregator or updater, the version of the form of the state's values. Raise it when
        that form changes: `upgrade` then brings values of earlier versions into it.
    """

    deterministic: bool = True
    positional: bool = False
    output_types: Sequence[object] | None = None
    identity: str | Callable[[], str] | None = None
    schema_version: int = 1
    _wrapped: Sequence[Operation] = ()
    """Operations that it runs, which are prepared and cleaned up with it."""

    def __repr__(self) -> str:
        return operation_name(self)

    def upgrade(self, value: Any, version: int) -> Any:
        """Return a value of an earlier `schema_version` in the form of this one; None removes it.

        Called whenever such a value is read, by batches and by queries, without `prepare`. Of
        windows that keep tuples it is given a tuple, as a list.
        """
        raise NotImplementedError(f"{operation_name(self)}.upgrade: from version {version}")

    def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
        """Get ready to run; called where the operation runs, before the first tuple.

        Once a task on Spark; once a partition and run on the local engine and in queries.
        """
        for each in self._wrapped:
            each.prepare(conf, context)

    def cleanup(self) -> None:
        """Release what `prepare` took, once for each time it was called, at the end of the task or
        run; not after a killed process.
        """
        for each in self._wrapped:
            each.cleanup()

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        """Spark types of the outputs, as far as they are known, in order.

        Parameters
        ----------
        inputs : Fields
            The input fields with their types.
        """
        return [ddl_type(declared) for declared in self.output_types or ()]


class Function(Operation, ABC):
    """Makes any number of tuples of one; `each` appends them to the input's fields.

    Examples
    --------
    >>> class Letters(Function):
    ...     output_types = [str]
    ...     def execute(self, tuple, collector):
    ...         for letter in tuple.getStringByField("word"):
    ...             collector.emit([letter])
    """

    @abstractmethod
    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        """Emit the outputs for one tuple of the input fields."""


class PlainFunction(Function):
    """A function written without tuples and collectors, which is two to three times as fast.

    Examples
    --------
    >>> class Letters(PlainFunction):
    ...     def expand(self, word: str) -> list[str]:
    ...         return list(word)
    """

    positional = True

    @abstractmethod
    def expand(self, *inputs: Any) -> Iterable[Any]:
        """The outputs for one tuple, whose values are the arguments.

        Returns
        -------
        iterable
            With one output field: its values (a tuple is a row, so ``(v,)`` is ``v`` too). With
            several: a tuple for each row.
        """

    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        for item in self.expand(*tuple):
            collector.emit(item if isinstance(item, _TUPLE) else (item,))


_TUPLE: type[tuple[Any, ...]] = tuple  # the published argument name ``tuple`` hides it


class Filter(Operation, ABC):
    """Keeps some tuples.

    Examples
    --------
    >>> class Short(Filter):
    ...     def isKeep(self, tuple):
    ...         return len(tuple.getString(0)) < 4
    """

    @abstractmethod
    def isKeep(self, tuple: TridentTuple) -> bool:
        """Whether this tuple stays."""


class MapFunction(Operation, ABC):
    """Replaces each tuple by one other."""

    @abstractmethod
    def execute(self, tuple: TridentTuple) -> Sequence[Any]:
        """The new tuple's values, one for each output field."""


class FlatMapFunction(Operation, ABC):
    """Replaces each tuple by any number of others."""

    @abstractmethod
    def execute(self, tuple: TridentTuple) -> Iterable[Sequence[Any]]:
        """The new tuples, each with a value for every output field."""


class Consumer(Operation, ABC):
    """Looks at tuples as they pass."""

    @abstractmethod
    def accept(self, tuple: TridentTuple) -> None:
        """Look at one tuple; it may come again when its batch is retried."""


class CombinerAggregator(Operation, ABC, Generic[A]):
    """An aggregate that can be made of partial ones; the fastest kind, as partitions combine first.

    Attributes
    ----------
    arity : int or None
        How many input fields it reads; None for any number.
    adds : bool
        Whether `combine` is ``a + b`` and null counts for nothing, so that a store can add by
        itself.
    """

    arity: int | None = None
    adds: bool = False

    @abstractmethod
    def init(self, tuple: TridentTuple) -> A:
        """The aggregate of one tuple."""

    @abstractmethod
    def combine(self, a: A, b: A) -> A:
        """The aggregate of both; associative, and commutative where order is not to matter."""

    @abstractmethod
    def zero(self) -> A:
        """The aggregate of no tuple, which combined with any other gives that other."""


class ReducerAggregator(Operation, ABC, Generic[A]):
    """An aggregate that takes in one tuple after the other."""

    @abstractmethod
    def init(self) -> A:
        """The aggregate of no tuple."""

    @abstractmethod
    def reduce(self, curr: A, tuple: TridentTuple) -> A:
        """The aggregate with one more tuple."""


class Aggregator(Operation, ABC, Generic[A]):
    """The most general aggregate: it may emit any number of tuples at any time.

    Attributes
    ----------
    acts_on_nothing : bool
        Whether it does anything without tuples, as Trident assumes by default. Declare False if it
        does not, so that a batch without tuples need not run for it.
    attempts : bool
        Whether `init` is told the attempt of the batch, a `Token`, and not its txid alone.
    """

    acts_on_nothing: bool = True
    attempts: bool = False

    @abstractmethod
    def init(self, batchId: object, collector: TridentCollector) -> A:
        """Begin a batch in a partition, or a group of it; what it returns is handed on.

        Parameters
        ----------
        batchId : object
            The batch's txid, or its `Token` where `attempts` says so; for DRPC the request's id.
        """

    @abstractmethod
    def aggregate(self, val: A, tuple: TridentTuple, collector: TridentCollector) -> A | None:
        """Take in one tuple.

        Returns
        -------
        object or None
            The value to hand on; None keeps ``val``, which may have been changed in place.
        """

    @abstractmethod
    def complete(self, val: A, collector: TridentCollector) -> None:
        """End the batch, or the group."""


class MultiReducer(Operation, ABC, Generic[A]):
    """Reduces the tuples of several streams together, batch by batch; see ``multiReduce``."""

    @abstractmethod
    def init(self, collector: TridentCollector) -> A:
        """Begin a batch, also one without tuples; what it returns is handed on."""

    @abstractmethod
    def execute(
        self, state: A, streamIndex: int, input: TridentTuple, collector: TridentCollector
    ) -> A | None:
        """Take in one tuple of a stream; the streams are counted from 0, as they were given.

        Returns
        -------
        object or None
            The value to hand on; None keeps ``state``, which may have been changed in place.
        """

    @abstractmethod
    def complete(self, state: A, collector: TridentCollector) -> None:
        """End the batch."""


class GroupedMultiReducer(Operation, ABC, Generic[A]):
    """Reduces the tuples of several streams together, group by group; see ``multiReduce``."""

    @abstractmethod
    def init(self, collector: TridentCollector, group: TridentTuple) -> A:
        """Begin a group, with its first tuple; what it returns is handed on.

        Parameters
        ----------
        group : TridentTuple
            The values of the group's fields, as the first stream names them.
        """

    @abstractmethod
    def execute(
        self,
        state: A,
        streamIndex: int,
        group: TridentTuple,
        input: TridentTuple,
        collector: TridentCollector,
    ) -> A | None:
        """Take in one tuple of a stream; see `MultiReducer.execute`."""

    @abstractmethod
    def complete(self, state: A, group: TridentTuple, collector: TridentCollector) -> None:
        """End the group."""


class CustomStreamGrouping(Operation, ABC):
    """Says into which partitions ``partition(grouping)`` brings each tuple.

    Examples
    --------
    >>> class ByFirstLetter(CustomStreamGrouping):
    ...     def chooseTasks(self, targetTasks, values):
    ...         return [targetTasks[ord(values["word"][0]) % len(targetTasks)]]
    """

    @abstractmethod
    def chooseTasks(self, targetTasks: Sequence[int], values: TridentTuple) -> Sequence[int]:
        """The partitions that get the tuple: one, several that each get a copy, or none.

        The published method has the sending task in place of ``targetTasks``, which its ``prepare``
        was given.

        Parameters
        ----------
        targetTasks : sequence of int
            The partitions that there are, from 0.
        values : TridentTuple
            All fields of the tuple.
        """


class StateUpdater(Operation, ABC, Generic[S]):
    """Writes tuples to a state, between its ``beginCommit`` and ``commit``.

    Attributes
    ----------
    timed : bool
        Whether it asks for the batch's time, which then is in the log before the batch runs.
    idle : float
        After how many seconds without tuples it asks for a batch without any; 0 for never.
    acts_on_nothing : bool
        Whether it is called of batches without tuples too; by default where it is timed.
    anywhere : bool
        Whether any partition may write any tuple, so that tuples stay where they are.
    """

    timed: bool = False
    idle: float = 0.0
    anywhere: ClassVar[bool] = False

    @property
    def acts_on_nothing(self) -> bool:
        return self.timed

    @abstractmethod
    def updateState(
        self, state: S, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        """Update the state with all tuples of a batch in this partition; there is at least one,
        unless the updater `acts_on_nothing`.

        What it emits are the new values, which ``newValuesStream`` carries on.
        """


class QueryFunction(Operation, ABC, Generic[S, R]):
    """Looks tuples up in a state.

    Attributes
    ----------
    queries : str or None
        What a state must have for it: ``"multiGet"``, ``"get"`` or ``"getTuples"``; None for
        anything.
    """

    queries: ClassVar[str | None] = None

    @abstractmethod
    def batchRetrieve(self, state: S, tuples: Sequence[TridentTuple]) -> Sequence[R]:
        """One result for each tuple, in order; called with a partition, or chunks of it, and for
        DRPC with the tuples of all requests that are answered together."""

    @abstractmethod
    def execute(self, tuple: TridentTuple, result: R, collector: TridentCollector) -> None:
        """Emit the outputs for one tuple and its result."""

    def infer_state_types(self, inputs: Fields, stored: Fields) -> Sequence[str | None]:
        """Spark types of the outputs, as far as they are known, in order.

        Parameters
        ----------
        inputs : Fields
            The input fields with their types.
        stored : Fields
            The fields of the state's new values: its keys and its value; empty where unknown.
        """
        return self.infer_types(inputs)


def operation_name(operation: object) -> str:
    """The name of an operation in plans and errors: its ``label``, else its class."""
    if isinstance(operation, Operation) or hasattr(operation, "label"):
        label = getattr(operation, "label", None)
        return label if isinstance(label, str) else f"{type(operation).__name__}()"
    return type(operation).__name__
