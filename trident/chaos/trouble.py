"""What is done to a server that the command has started."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import Protocol

TIMEOUT = 0.4
"""How many seconds an answer of a server that was started here may take."""

_PATIENCE = 30.0

Trouble = Callable[[], str]
"""Does something to a server, and returns what."""


class Hurtable(Protocol):
    """A server that is ours."""

    def start(self) -> None: ...

    def kill(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


def pause(server: Hurtable, seconds: float = 2 * TIMEOUT) -> str:
    """Stop a server for longer than anybody waits for an answer."""
    server.pause()
    sleep(seconds)
    server.resume()
    return "paused"


def restart(server: Hurtable) -> str:
    """Kill a server, and start it again."""
    server.kill()
    deadline = monotonic() + _PATIENCE
    while True:
        try:
            server.start()
        except RuntimeError:
            # Of PostgreSQL's processes one may live for a moment longer, and has its memory.
            if monotonic() > deadline:
                raise
            sleep(0.2)
        else:
            return "restarted"
