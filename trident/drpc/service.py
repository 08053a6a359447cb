"""Answers queries in this process, from whole committed batches."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self

import orjson

from trident.drpc.errors import DRPCClosedError, DRPCExecutionError, UnknownFunctionError
from trident.kernels.block import Block
from trident.local.program import Program
from trident.local.program_input import ProgramInput, Rows
from trident.open_states import close_states, make_states
from trident.operations.emitted import Row
from trident.plan.nodes import StateNode
from trident.plan.plan import DRPCQuery, Plan
from trident.states.reading import read_committed
from trident.states.state import State


class LocalDRPC:
    """The queries of a plan, answered in the process and thread that asks.

    Each is compiled once. It needs the plan and its states, but no engine: it answers for a run
    on Spark as well, and for the states of a topology that isn't running at all.

    Parameters
    ----------
    plan : Plan
        The plan; its states are made anew, for reading.
    conf : mapping, optional
        What operations are prepared with.

    Raises
    ------
    PlanError
        For a query with a step that runs on Spark only.

    Notes
    -----
    May be called by any number of threads; then several run the same operations of a query, and
    each thread reads through states of its own. A query that meets a batch being committed is run
    again, so its operations may see a request twice.

    Examples
    --------
    >>> from trident import Sum, TridentTopology
    >>> topology = TridentTopology()
    >>> _ = (topology.newDRPCStream("add")
    ...     .each("args", lambda args: map(int, args.split()), "n")
    ...     .aggregate("n", Sum(), "sum"))
    >>> with LocalDRPC(topology.plan()) as drpc:
    ...     drpc.execute("add", "2 3")
    '[[5]]'
    """

    def __init__(self, plan: Plan, conf: Mapping[str, Any] | None = None) -> None:
        self._closed = False
        self._queries = {
            function: _Query(query, _groups(plan, query), conf)
            for function, query in plan.drpc.items()
        }
        for query in self._queries.values():
            query.program.prepare()

    def execute(self, function: str, args: str) -> str:
        """Answer one request.

        Parameters
        ----------
        function : str
            The name given to ``newDRPCStream``.
        args : str
            The arguments, the only value of the query's only tuple.

        Returns
        -------
        str
            JSON, as Storm's: a list of the tuples of the step that was declared last, each a list
            of its values; ``[]`` where there is none. What JSON has no form for is written as
            ``str`` shows it.

        Raises
        ------
        UnknownFunctionError
            When the topology has no such function.
        DRPCExecutionError
            When the query failed; its cause is what an operation or a state raised.
        DRPCClosedError
            When the run has been stopped.
        """
        if self._closed:
            raise DRPCClosedError(function)
        query = self._queries.get(function)
        if query is None:
            raise UnknownFunctionError(function, tuple(self._queries))
        try:
            if not isinstance(args, str):
                raise TypeError(f"the arguments of a query are a str, found {type(args).__name__}")
            # Plain text, whatever its class is shown as.
            return _json(query.answer("".join((args,))))
        except Exception as error:
            raise DRPCExecutionError(function, args, str(error) or repr(error)) from error

    def close(self) -> None:
        """Answer no more requests, and close the states; may be repeated."""
        if not self._closed:
            self._closed = True
            for query in self._queries.values():
                query.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Query:
    """A compiled query, with a set of its states for each thread that asks at the same time."""

    def __init__(
        self, query: DRPCQuery, groups: Mapping[StateNode, str], conf: Mapping[str, Any] | None
    ) -> None:
        self.program = Program(query.nodes, query.result, conf)
        self._source = query.source
        self._groups = groups
        self._nodes = tuple(groups)
        self._conf = conf
        self._idle: deque[Sequence[tuple[str, State]]] = deque()
        self._numbers = count(1)
        self._closed = False

    def answer(self, args: str) -> Rows:
        """The tuples that answer a request."""
        number = next(self._numbers)

        def ask(views: Sequence[Any]) -> Rows:
            queried = dict(zip(self._nodes, views, strict=True)).__getitem__
            request = Block({"args": [args]}, 1)
            return self.program.run(ProgramInput(number, None, {self._source: request}, queried))

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

    def close(self) -> None:
        """Close the idle states; a thread that still asks closes those that it uses."""
        self._closed = True
        self._close_idle()
        self.program.close()

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


def _json(rows: Sequence[Row]) -> str:
    try:
        return orjson.dumps(rows, default=_text, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # Integers of more than 64 bits, and text with lone surrogates.
        return json.dumps(rows, default=_text, separators=(",", ":"))


def _text(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
