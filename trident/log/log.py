"""The coordinator log of a batch group: the only place where a batch commits."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from trident.log.entry import LogEntry
from trident.log.errors import LogConflictError


class Log(ABC):
    """A sequence of entries, each created exclusively.

    A writer appends only directly after an entry of its own. A newcomer appends a begin of its
    own after the newest entry before it touches any state, so of two writers one always stops.

    Parameters
    ----------
    place : str
        How errors name the log.
    """

    def __init__(self, place: str) -> None:
        self.place = place

    @abstractmethod
    def newest(self) -> LogEntry | None:
        """Return the entry with the highest number, None where there is none.

        Raises
        ------
        CorruptLogError
            When it can't be read.
        """

    @abstractmethod
    def append(self, entry: LogEntry) -> None:
        """Add `entry` under its number, durably.

        Raises
        ------
        LogConflictError
            When there is an entry of this or a higher number already.
        UnsyncedLogError
            When it was added, but perhaps not durably: nothing may be built on it.
        OSError
            When it is not known whether the entry was added; if it is there, then durably.
        """


class MemoryLog(Log):
    """The log of a run without a checkpoint: it ends with the process.

    Examples
    --------
    >>> from trident.states.values import Token
    >>> log = MemoryLog("words")
    >>> log.append(LogEntry(1, "me", "a1", begun=Token(1, 0), committed=0))
    >>> log.newest().begun
    Token(txid=1, attempt=0)
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._newest: LogEntry | None = None
        self._lock = threading.Lock()

    def newest(self) -> LogEntry | None:
        return self._newest

    def append(self, entry: LogEntry) -> None:
        with self._lock:
            if self._newest is not None and self._newest.number >= entry.number:
                raise LogConflictError(self.place, entry.number)
            self._newest = entry
