"""The coordinator log of a batch group: the only place where a batch commits."""

from __future__ import annotations

import os
import secrets
import threading
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from trident.log.entry import LogEntry
from trident.log.errors import LogConflictError, TakenOverError
from trident.states.values import Token


class Log(ABC):
    """A sequence of entries, each created exclusively.

    A writer appends only directly after an entry of its own. A newcomer first appends a begin after
    the newest entry, before it touches any state. So of two writers one always stops.

    `place` is how errors name the log.
    """

    damage: str = ""
    """What the log's end holds that is no entry; empty if all could be read."""

    def __init__(self, place: str) -> None:
        self.place = place

    @abstractmethod
    def newest(self) -> LogEntry | None:
        """Return the entry with the highest number, None without any.

        Raises CorruptLogError if it is damaged, LogUnavailableError if the disk failed.
        """

    @abstractmethod
    def append(self, entry: LogEntry) -> None:
        """Add `entry` under its number, durably.

        Raises
        ------
        LogConflictError
            When there is another entry of this number already, or one of a higher number.
        LogUnavailableError
            When it is not known whether the entry was added, and survives a loss of power: nothing
            may be built on it. The same entry may be appended again, until that succeeds.
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


class LogWriter:
    """One run's writing to one log; used by one thread at a time."""

    def __init__(self, log: Log) -> None:
        self.id = f"{os.getpid()}-{secrets.token_hex(4)}"
        self.log = log
        self.claim = 0
        """The number of the run's first entry; that of a later run is higher."""
        self._entry: LogEntry | None = None

    @property
    def entry(self) -> LogEntry:
        """The last entry of this run, which is the log's newest as far as the run knows."""
        if self._entry is None:
            raise RuntimeError("the log is not held yet: begin() comes first")
        return self._entry

    def begin(self, first: LogEntry) -> None:
        """Append the run's first entry; LogConflictError if another run was faster."""
        self._append(replace(first, writer=self.id))
        self.claim = first.number

    def append(self, **changes: Any) -> LogEntry:
        """Append the last entry with `changes`, and return the new one.

        Raises
        ------
        LogConflictError
            When another run has taken over.
        LogUnavailableError
            When the disk failed: the entry may be there or not. Until the same call has succeeded
            nothing else may be appended.
        """
        entry = self.entry
        self._append(replace(entry, number=entry.number + 1, **changes))
        return self.entry

    def next_attempt(self) -> None:
        """Reserve the next attempt of the batch under way, after the log is read again."""
        self.check_held()
        txid, attempt = self.entry.begun
        self.append(begun=Token(txid, attempt + 1))

    def check_held(self) -> None:
        """Read the log again; raise TakenOverError if another run writes it by now."""
        newest = self.log.newest()
        if newest is None:
            raise LogConflictError(self.log.place, self.entry.number)
        if newest.writer != self.id:
            raise TakenOverError(self.log.place, self.id, newest.writer)

    def _append(self, entry: LogEntry) -> None:
        self.log.append(entry)
        self._entry = entry
