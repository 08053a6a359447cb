"""A run's writing to a log: it appends only directly after an entry of its own."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from typing import Any

from trident.log.entry import LogEntry
from trident.log.errors import LogConflictError, TakenOverError
from trident.log.log import Log
from trident.states.values import Token


class LogWriter:
    """One run's writing to one log; used by one thread at a time."""

    def __init__(self, log: Log) -> None:
        self.id = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._log = log
        self._entry: LogEntry | None = None

    @property
    def entry(self) -> LogEntry:
        """The last entry of this run, which is the log's newest as far as the run knows."""
        if self._entry is None:
            raise RuntimeError("the log is not held yet: begin() comes first")
        return self._entry

    def begin(self, first: LogEntry) -> None:
        """Append the run's first entry; LogConflictError where another run was faster."""
        self._append(replace(first, writer=self.id))

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
        """Read the log again; raise TakenOverError where another run writes it by now."""
        newest = self._log.newest()
        if newest is None:
            raise LogConflictError(self._log.place, self.entry.number)
        if newest.writer != self.id:
            raise TakenOverError(self._log.place, self.id, newest.writer)

    def _append(self, entry: LogEntry) -> None:
        self._log.append(entry)
        self._entry = entry
