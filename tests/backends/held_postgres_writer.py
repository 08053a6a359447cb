"""Processes that stop themselves in the middle of a call and go on when they are told to; run by
test_postgres_faults."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Generator
from typing import Any

from psycopg.waiting import Wait

from trident.backends.postgres import connections
from trident.backends.urls import state_from_url
from trident.errors import StaleBatchError, StateUnavailableError
from trident.operations.builtin import Sum
from trident.states import ControlRecord, Token

WORDS = [b"%05d" % number + b"w" * 1300 for number in range(5_000)]
"""More than is on its way at once."""

MOMENTS = ("before it is sent", "while it is sent", "before the answer is read")
CALLS = ("begin", "write", "ready")
_SOME = 200


def words_of(call: str) -> list[bytes]:
    """Return what is counted by a writer that stops in that call."""
    return WORDS if call == "write" else WORDS[:_SOME]


def main(cases: list[list[str]]) -> None:
    """Write in a process for each case; print their numbers, and how each ended."""
    processes = []
    for number, case in enumerate(cases):
        process = os.fork()
        if process == 0:
            # In one piece: others write there too.
            os.write(sys.stdout.fileno(), f"{number} {outcome(*case)}\n".encode())
            os._exit(0)
        processes.append(process)
    print(json.dumps(processes), flush=True)
    for process in processes:
        os.waitpid(process, 0)


def outcome(url: str, call: str, moment: str) -> str:
    """Run attempt 0 of batch 1 and stop in one of its calls; return how it ended."""
    counted = words_of(call)
    state: Any = state_from_url(url).makeState()
    record = ControlRecord("log", Token(1, 0))
    try:
        stop(call == "begin", moment, is_large=False)
        state.control.begin(record)
        state.beginCommit(record)
        state.multiFold(counted, [1] * len(counted), Sum())
        narrow(state.backing)
        stop(call == "write", moment, is_large=True)
        state.commit(record)
        stop(call == "ready", moment, is_large=False)
        state.control.ready(record)
    except (StaleBatchError, StateUnavailableError) as error:
        return type(error).__name__
    return "done"


def narrow(backing: Any) -> None:
    """Let so little be on its way to the server that a large statement has to wait."""
    with (
        backing._server.lend() as connection,
        socket.socket(fileno=os.dup(connection.fileno())) as way,
    ):
        way.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)


def stop(here: bool, moment: str, is_large: bool) -> None:
    """Have the next call that waits stop, where it is `here`."""
    if not here:
        return
    until = connections._stop_at

    def stopping(*arguments: Any) -> Generator[Any, Any, Any]:
        connections._stop_at = until
        if moment == MOMENTS[0]:
            os.kill(os.getpid(), signal.SIGSTOP)
        asked = until(*arguments)
        wanted = next(asked)  # it has sent what went without waiting
        if moment == MOMENTS[1]:
            assert wanted & Wait.W or not is_large, "all of it was sent at once"
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            while True:
                wanted = asked.send((yield wanted))
        except StopIteration as done:
            if moment == MOMENTS[2]:
                os.kill(os.getpid(), signal.SIGSTOP)
            return done.value

    connections._stop_at = stopping


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
