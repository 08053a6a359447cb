"""The coordinator log in a store: its newest entry is one value, replaced by each append."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trident.log.entry import EncodedEntry, LogEntry
from trident.log.errors import (
    CheckpointError,
    CorruptLogError,
    LogConflictError,
    LogUnavailableError,
)
from trident.log.log import Log
from trident.states.checkpoint_store import CheckpointStore
from trident.states.errors import CorruptStateError, StateUnavailableError


class StoredLog(Log):
    """A log as one value of a checkpoint's store, which replaces it only where it is what the
    writer expects.

    An entry holds everything, so the newest is all that is kept. No two are equal, as each names
    its writer and its number: a request that arrives late finds another than it expects. Where the
    answer is lost the same entry is appended again, which succeeds where it is there.
    """

    def __init__(self, store: CheckpointStore, group: str) -> None:
        super().__init__(store.place_of(group))
        self._store = store
        self._group = group
        self._known: EncodedEntry | None = None

    def newest(self) -> LogEntry | None:
        with self._reached():
            data = self._store.read(self._group)
        entry = None if data is None else LogEntry.decode(data, self.place)
        self._check_kept(entry)
        self._known = None if entry is None or data is None else EncodedEntry(entry.number, data)
        return entry

    def append(self, entry: LogEntry) -> None:
        new = EncodedEntry.of(entry)
        self._check_size(new)
        if self._known is None and new.number > 1:
            self.newest()
        known = self._known
        if new not in (known, None) and (known.number if known else 0) + 1 != new.number:
            raise LogConflictError(self.place, new.number)
        with self._reached():
            expected = None if known is None else known.data
            replaced = self._store.replace(self._group, new.data, expected)
        if not replaced:
            self.newest()
            raise LogConflictError(self.place, new.number)
        self._known = new

    def _check_kept(self, found: LogEntry | None) -> None:
        """Raise where the store has lost what it had acknowledged."""
        known = self._known
        if known is None or (found is not None and found.number >= known.number):
            return
        there = "nothing is there" if found is None else f"its number is {found.number}"
        raise CorruptLogError(
            self.place,
            f"{there}, and entry {known.number} was acknowledged: the store has lost what it said "
            "it had",
        )

    def _check_size(self, new: EncodedEntry) -> None:
        largest = self._store.largest
        if largest is not None and len(new.data) > largest:
            raise CheckpointError(
                self._store.where,
                f"an entry of the log has {len(new.data)} bytes, and {largest} is the most that "
                "is taken there",
                "What a spout returns as metadata is part of it. Take a checkpoint in a folder or "
                "in Redis: a new one, with adopt=Adopt.from_checkpoint(<this one>).",
            )

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except StateUnavailableError as error:
            problem = f"{error.place}: {error.problem}"
            raise LogUnavailableError(self.place, problem, error.advice) from error
        except CorruptStateError as error:
            raise CorruptLogError(self.place, str(error)) from error
