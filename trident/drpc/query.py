"""A query of a plan, compiled, with the states that it reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

from trident.drpc.answer_json import answer_json
from trident.drpc.errors import (
    DRPCError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCUnavailableError,
)
from trident.errors import FailedException, OperationError
from trident.kernels.block import Block
from trident.local.program import Program
from trident.local.program_input import ProgramInput, Rows
from trident.open_states import close_states, make_states
from trident.plan.nodes import Node, StateNode
from trident.plan.plan import DRPCQuery, Plan
from trident.states.errors import UnavailableError
from trident.states.reading import read_committed
from trident.states.state import State

T = TypeVar("T")


class Query:
    """Answers requests to one function, in the thread that calls.

    Parameters
    ----------
    plan : Plan
        The plan.
    query : DRPCQuery
        Its query.
    conf : mapping or None
        What operations and states are made with.

    Notes
    -----
    Each call that runs at the same time as another reads through states of its own.
    """

    def __init__(self, plan: Plan, query: DRPCQuery, conf: Mapping[str, Any] | None) -> None:
        self.function = query.function
        self._program = Program(query.nodes, query.result, conf)
        self._source = query.source
        self._groups = _groups(plan, query)
        self._nodes = tuple(self._groups)
        self.reads = bool(self._nodes)
        self._conf = conf
        self._idle: deque[Sequence[tuple[str, State]]] = deque()
        self._numbers = count(1)
        self._closed = False

    def prepare(self) -> None:
        """Prepare the operations, once."""
        self._program.prepare()

    def answer(self, args: str) -> str:
        """Answer one request.

        Raises
        ------
        DRPCExecutionError
            When the query failed; its cause is what an operation or a state raised.
        """
        request: dict[Node, Block] = {self._source: Block({"args": [args]}, 1)}
        number = next(self._numbers)

        def ask(views: Sequence[Any]) -> Rows:
            queried = dict(zip(self._nodes, views, strict=True)).__getitem__
            return self._program.run(ProgramInput(number, None, request, queried))

        try:
            return answer_json(self._read(ask))
        except Exception as error:
            raise _failure(self.function, args, error) from error

    def answer_together(self, requests: Sequence[str]) -> list[str | DRPCError]:
        """Answer some requests, of each its answer or its failure; a state is asked once for all.

        All are of one moment. The steps before the first look-up run once, whatever batches do
        meanwhile.
        """
        if len(requests) == 1:
            try:
                return [self.answer(requests[0])]
            except DRPCError as error:
                return [error]
        try:
            together = self._program.side_by_side([*map(self._given, requests)])

            def look_up(views: Sequence[Any]) -> None:
                together.look_up(dict(zip(self._nodes, views, strict=True)).__getitem__)

            if self._nodes:
                self._read(look_up)
            made: Sequence[Rows | Exception] = self._program.rows(together)
        except Exception as error:
            made = [error] * len(requests)
        return [_shown(self.function, *each) for each in zip(requests, made, strict=True)]

    def close(self) -> None:
        """Close the idle states; a thread that still asks closes those that it uses."""
        self._closed = True
        self._close_idle()
        self._program.close()

    def _given(self, args: str) -> ProgramInput:
        request = Block({"args": [args]}, 1)
        return ProgramInput(next(self._numbers), None, {self._source: request})

    def _read(self, ask: Callable[[Sequence[Any]], T]) -> T:
        """Call `ask` with views of the states as of one moment, perhaps several times."""
        if not self._nodes:
            return ask(())
        try:
            states = self._idle.pop()
        except IndexError:
            made = make_states(self._nodes, self._conf)
            states = [(self._groups[node], state) for node, state in made.items()]
        try:
            return read_committed(states, ask)
        finally:
            self._idle.append(states)
            if self._closed:
                self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            try:
                states = self._idle.pop()
            except IndexError:
                return
            close_states(state for _, state in states)


def _groups(plan: Plan, query: DRPCQuery) -> dict[StateNode, str]:
    """The states of a query, each with the name of the group whose batches update it."""
    groups = {}
    for node in query.states:
        group = plan.group_of(node)
        groups[node] = f"group {group.id}" if group else f"state {node.state.name}"
    return groups


def _shown(function: str, args: str, made: Rows | Exception) -> str | DRPCError:
    """The answer as text, or the failure."""
    error = made if isinstance(made, Exception) else None
    if not isinstance(made, Exception):
        try:
            return answer_json(made)
        except Exception as unshown:
            error = unshown
    assert error is not None
    failure = _failure(function, args, error)
    failure.__cause__ = error
    return failure


def _failure(function: str, args: str, error: Exception) -> DRPCExecutionError:
    """What a failed query raises for an error."""
    cause = str(error) or repr(error)
    if isinstance(error, OperationError):
        summary = f"{error.error.strip()} in the step {error.step}"
        return DRPCExecutionError(function, args, cause, summary)
    if isinstance(error, UnavailableError):
        return DRPCUnavailableError(function, args, cause)
    if isinstance(error, FailedException):
        return DRPCExecutionError(function, args, cause)
    return DRPCInternalError(function, args, cause)
