"""The contract of a store for checkpoints: bytes by name, each replaced as a whole."""

from __future__ import annotations

import os
import secrets
import socket
from abc import ABC, abstractmethod

_life = secrets.token_hex(4)


def this_process() -> str:
    """Return this process's name as a holder; it is unique, as the number of a process is not."""
    return f"{os.getpid()} on {socket.gethostname()} ({_life})"


class CheckpointStore(ABC):
    """Keeps the logs of a checkpoint that is not a folder; used by the driver alone.

    A log is one value under the name of its group: its newest entry, which holds all that a group
    has to remember. An append replaces it only if it still is the one that the writer knows. So of
    two writers one always stops, even if the store can't tell runs apart.

    For a store of your own, register a function that takes a `StateURL` and returns the store, as
    an entry point of the group ``trident.checkpoints``; the name is the scheme of the URL.

    Raises
    ------
    StateUnavailableError
        From every method: when the store can't be reached, or gave no certain answer. Whether a
        value was replaced is then not known; it may still be, by a request that is under way.
    CorruptStateError
        From every method: when the stored bytes can't be a checkpoint.
    """

    where: str
    """The URL without login and options, for errors; the same for every process."""

    largest: int | None = None
    """How many bytes a value may have; None for no limit."""

    def probe(self) -> str | None:
        """Try the promises that a checkpoint needs; return a broken one, else None.

        Called at each start, and by ``doctor``. The default trusts the store.
        """
        return None

    def hold(self) -> str | None:
        """Lock the checkpoint for this run; return its other holder's ``this_process()``, or None.

        The lock only reports earlier what the logs would refuse later. So a store whose locks would
        long outlive their holder, or need a clock, has none: the default does nothing.
        """
        return None

    @abstractmethod
    def release(self) -> None:
        """Unlock the checkpoint and close all connections; may be repeated, never fails."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names that have a value."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return the value after all earlier replacements; None if there is none."""

    @abstractmethod
    def replace(self, name: str, new: bytes, expected: bytes | None) -> bool:
        """Replace the value `expected` by `new`, durably and in one atomic step.

        Returns whether the value now is `new`, also if it was before. None expects no value.
        """

    @abstractmethod
    def place_of(self, name: str) -> str:
        """Return the place of a value, in words of the store's administrators."""
