"""What a store has to offer that keeps a checkpoint: bytes by name, each replaced as a whole."""

from __future__ import annotations

import os
import secrets
import socket
from abc import ABC, abstractmethod

_life = secrets.token_hex(4)


def this_process() -> str:
    """How a process names itself as a holder; the number of a container may come again."""
    return f"{os.getpid()} on {socket.gethostname()} ({_life})"


class CheckpointStore(ABC):
    """Where a checkpoint's logs are that is no folder; used by the driver alone.

    A log is one value under the name of its group: its newest entry, which holds all that a group
    has to remember. Appending replaces it, only where it still is what the writer knows; so of two
    writers one always stops, whether the store can tell runs apart or not.

    Who writes one makes it of a URL, and registers the function that does, which takes a
    `StateURL`, as an entry point of the group ``trident.checkpoints``; the name is the scheme.

    Raises
    ------
    StateUnavailableError
        From every method: when the store can't be reached, or gave no certain answer. Whether a
        value was replaced is then not known; it may still be, by a request that is under way.
    CorruptStateError
        From every method: when what is there can't be a checkpoint.
    """

    where: str
    """The URL without login and options: how errors name it, and the same for whoever opens it."""

    largest: int | None = None
    """How many bytes a value may have; None for as many as one likes."""

    def probe(self) -> str | None:
        """Try what a checkpoint rests on; return what the store does wrong, None for nothing.

        Asked at each start, and by ``doctor``. The default trusts the store.
        """
        return None

    def hold(self) -> str | None:
        """Take it for this run; return who has it instead, by ``this_process()``, else None.

        That only says earlier what the logs would refuse later. So a store whose locks would
        outlive their holder by much, or need a clock, has none: the default does nothing.
        """
        return None

    @abstractmethod
    def release(self) -> None:
        """Let another run have it, and close all connections; may be repeated, never fails."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names that have a value."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return a value as all that was replaced before has left it; None where none is."""

    @abstractmethod
    def replace(self, name: str, new: bytes, expected: bytes | None) -> bool:
        """Put a value, durably, where `expected` is or `new` already; say whether it is there.

        In one step: nobody else can put another in between. None expects that there is no value.
        """

    @abstractmethod
    def place_of(self, name: str) -> str:
        """Return where a value is, in words that whoever looks after the store understands."""
