"""A query of a plan, compiled, with the states that it reads, opened in sets."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Generic, TypeVar

import orjson

from trident.backends.memory import MemoryMap
from trident.batch.states import close_states, make_states
from trident.drpc.errors import (
    DRPCError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCUnavailableError,
    StateNotThereError,
)
from trident.errors import FailedException, OperationError
from trident.job.compile import Local, compile_job
from trident.local.program import Program
from trident.local.program_input import ProgramInput, Rows
from trident.operations.builtin import (
    Count,
    Equals,
    FilterNull,
    MapGet,
    Max,
    Min,
    SnapshotGet,
    Split,
    Sum,
)
from trident.operations.emitted import Row
from trident.plan.nodes import StateNode
from trident.plan.plan import DRPCQuery, Plan
from trident.states.errors import NoStateError, UnavailableError
from trident.states.maps.reading import read_committed
from trident.states.state import State
from trident.tuples.block import Block

T = TypeVar("T")
Views = Mapping[str, Any]
"""What a query reads of each of its states, by name."""


class Query:
    """Answers requests to one function, in the thread that calls.

    Each call that runs at the same time as another reads through states of its own.
    """

    def __init__(self, plan: Plan, query: DRPCQuery, conf: Mapping[str, Any] | None) -> None:
        self.function = query.function
        self._program = Program(compile_job(query, Local()), conf)
        self._states = StateSets(plan, query, conf)
        self.reads = bool(self._states)
        self.never_waits = _never_waits(query)
        self._numbers = count(1)

    def prepare(self) -> None:
        self._program.prepare()

    def answer(self, args: str) -> str:
        """Answer one request.

        The cause of a DRPCExecutionError is what an operation or a state raised.
        """
        request = {self.function: Block({"args": [args]}, 1)}
        number = next(self._numbers)

        def run(views: Views) -> Rows:
            return self._program.run(ProgramInput(number, None, request, views.__getitem__))

        try:
            return answer_json(self._states.read(run))
        except Exception as error:
            raise failure_of(self.function, args, error) from error

    def answer_together(self, requests: Sequence[str]) -> list[str | DRPCError]:
        """Return the answer to each request, or its failure; a state is asked once for all.

        All answers are of one moment. The steps before the first look-up run once, whatever batches
        do meanwhile.
        """
        if len(requests) == 1:
            try:
                return [self.answer(requests[0])]
            except DRPCError as error:
                return [error]
        try:
            together = self._program.side_by_side([*map(self._input_of, requests)])
            if self._states:
                self._states.read(lambda views: together.look_up(views.__getitem__))
            outcomes: Sequence[Rows | Exception] = self._program.rows(together)
        except Exception as error:
            outcomes = [error] * len(requests)
        pairs = zip(requests, outcomes, strict=True)
        return [_answer_of(self.function, args, outcome) for args, outcome in pairs]

    def close(self) -> None:
        """Close the idle states; a thread that still asks closes those that it uses."""
        self._states.close()
        self._program.close()

    def _input_of(self, args: str) -> ProgramInput:
        request = Block({"args": [args]}, 1)
        return ProgramInput(next(self._numbers), None, {self.function: request})


def _answer_of(function: str, args: str, outcome: Rows | Exception) -> str | DRPCError:
    """The answer as text, or the failure."""
    try:
        if not isinstance(outcome, Exception):
            return answer_json(outcome)
    except Exception as error:
        outcome = error
    return failure_of(function, args, outcome)


def failure_of(function: str, args: str, error: Exception) -> DRPCExecutionError:
    """Return what a query raises that failed with an error."""
    cause, summary = str(error) or repr(error), ""
    kind: type[DRPCExecutionError] = DRPCInternalError
    if isinstance(error, OperationError):
        kind, summary = DRPCExecutionError, f"{error.error.strip()} in the step {error.step}"
    elif isinstance(error, NoStateError):
        kind = StateNotThereError
    elif isinstance(error, UnavailableError):
        kind = DRPCUnavailableError
    elif isinstance(error, FailedException):
        kind = DRPCExecutionError
    failure = kind(function, args, cause, summary)
    failure.__cause__ = error
    return failure


_NEVER_WAIT = {Count, Equals, FilterNull, MapGet, Max, Min, SnapshotGet, Split, Sum}
"""Operations that call no code of a user, and take a time that follows from their tuples. A class
derived from one of them may do anything."""


def _never_waits(query: DRPCQuery) -> bool:
    """Whether no step of a query can wait: all its states are in this process's memory, and all its
    operations are the library's own."""
    operations = [node.operation for node in query.nodes]
    return all(each is None or type(each) in _NEVER_WAIT for each in operations) and all(
        state.state.factory.map_type is MemoryMap for state in query.states
    )


def answer_json(rows: Sequence[Row]) -> str:
    """The tuples of an answer as JSON, a list for each."""
    try:
        return orjson.dumps(rows, default=_text, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # Integers of more than 64 bits, and text with lone surrogates.
        return json.dumps(rows, default=_text, separators=(",", ":"))


def _text(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


class StateSets:
    """The states of a query. Any number of threads may read, each with a set of its own."""

    def __init__(self, plan: Plan, query: DRPCQuery, conf: Mapping[str, Any] | None) -> None:
        groups = _groups(plan, query)
        self._nodes = tuple(groups)

        def make() -> list[tuple[str, State]]:
            return [(groups[node], state) for node, state in make_states(groups, conf).items()]

        self._sets = IdleObjects(make, lambda states: close_states(state for _, state in states))

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def read(self, ask: Callable[[Views], T]) -> T:
        """Call `ask` with views of the states as of one moment, perhaps several times."""
        if not self._nodes:
            return ask({})
        states = self._sets.take()
        names = [node.state.name for node in self._nodes]
        try:
            return read_committed(states, lambda views: ask(dict(zip(names, views, strict=True))))
        finally:
            self._sets.give_back(states)

    def close(self) -> None:
        """Close the idle sets; a thread that still asks closes the one that it uses."""
        self._sets.close()


def _groups(plan: Plan, query: DRPCQuery) -> dict[StateNode, str]:
    """The states of a query, each with the name of the group whose batches update it."""
    groups = {}
    for node in query.states:
        group = plan.group_of(node)
        groups[node] = f"group {group.id}" if group else f"state {node.state.name}"
    return groups


class IdleObjects(Generic[T]):
    """Lends an idle object to each thread that asks, or a new one where all are in use."""

    def __init__(self, make: Callable[[], T], close: Callable[[T], object]) -> None:
        self._make = make
        self._close_one = close
        self._idle: deque[T] = deque()
        self._closed = False

    def take(self) -> T:
        """Return an object for the caller alone; raises what making it does."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._make()

    def give_back(self, used: T) -> None:
        """Let another thread use it."""
        self._idle.append(used)
        if self._closed:
            self.close()

    def close(self) -> None:
        """Close the idle objects, and each other one when it is given back."""
        self._closed = True
        while self._idle:
            try:
                idle = self._idle.pop()
            except IndexError:  # another thread has closed the last
                return
            self._close_one(idle)
