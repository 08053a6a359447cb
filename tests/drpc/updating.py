"""A function that updates a state, in a process of its own that is killed while it does.

Run as ``python -m``: for each point of a batch a child asks for what the child before it was killed
in, then for something else, in which it is killed itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trident import MapGet, MemoryMapState, StateUpdater, Sum, TridentTopology
from trident.backends.state_spec import StateLike
from trident.batch.watchpoints import POINTS
from trident.testing.points import kill_at


def parsed(args: str) -> list[tuple[str, int]]:
    name, amount = args.split()
    return [(name, int(amount))]


class Note(StateUpdater[Any]):
    def updateState(self, state: Any, tuples: Sequence[Any], collector: Any) -> None:
        state.multiPut([(each[0],) for each in tuples], [1] * len(tuples))


def bank(state: StateLike | None = None, answers: StateLike | None = None) -> TridentTopology:
    """``deposit`` adds an amount to an account and answers with the sum; ``balance`` reads it."""
    made = TridentTopology()
    accounts = (
        made.newDRPCStream("deposit", answers=answers or MemoryMapState.Factory())
        .each("args", parsed, "name, amount")
        .groupBy("name")
        .persistentAggregate(state or MemoryMapState.Factory(), "amount", Sum(), "balance")
    )
    made.newDRPCStream("balance").stateQuery(accounts, "args", MapGet(), "balance").project(
        "balance"
    )
    return made


def lasting(folder: Path) -> TridentTopology:
    """The same, in files."""
    return bank(f"sqlite:{folder / 'accounts.db'}", f"sqlite:{folder / 'answers.db'}")


def _killed_at(point: str, number: int, folder: Path) -> None:
    """Ask again for what the process before was killed in, and be killed in the next request."""
    with lasting(folder).start(checkpoint=folder / "checkpoint") as run:
        if number:
            print(run.drpc.execute("deposit", "ann 1", request_id=f"{number - 1}"), flush=True)
        with kill_at(point):
            run.drpc.execute("deposit", "ann 1", request_id=f"{number}")


def _in_a_child(work: Any, *given: Any) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work(*given)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    for index, each in enumerate(POINTS):
        assert _in_a_child(_killed_at, each, index, Path(sys.argv[1])) == -signal.SIGKILL, each
