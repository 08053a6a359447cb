"""The coordinator log of a batch group: the only place where a batch commits."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from trident.log.entry import LogEntry
from trident.log.errors import LogConflictError


class Log(ABC):
    """A sequence of entries, each created exclusively.

    A writer appends only directly after an entry of its own. A newcomer appends a begin of its own
    after the newest entry before it touches any state, so of two writers one always stops.

    `place` is how errors name the log.
    """

    damage: str = ""
    """What was found at the log's end that is no entry; nothing, where all could be read."""

    def __init__(self, place: str) -> None:
        self.place = place

    @abstractmethod
    def newest(self) -> LogEntry | None:
        """The entry with the highest number, None without any; raises where damaged, or the disk
        failed."""

    @abstractmethod
    def append(self, entry: LogEntry) -> None:
        """Add `entry` under its number, durably.

        Raises
        ------
        LogConflictError
            When there is another entry of this number already, or one of a higher number.
        LogUnavailableError
            When it is not known whether the entry was added, or would survive a loss of power:
            nothing may be built on it. The same entry may be appended again, until that succeeds.
        """


class MemoryLog(Log):
    """The log of a run without a checkpoint: it ends with the process."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._newest: LogEntry | None = None
        self._lock = threading.Lock()

    def newest(self) -> LogEntry | None:
        return self._newest

    def append(self, entry: LogEntry) -> None:
        with self._lock:
            newest = self._newest
            if newest is not None and newest.number >= entry.number and newest != entry:
                raise LogConflictError(self.place, entry.number)
            self._newest = entry
