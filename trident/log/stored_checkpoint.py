"""A checkpoint in a store, which any machine can reach: the newest entry of each log is one value,
and an append replaces it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trident.log.entry import EncodedEntry, LogEntry
from trident.log.errors import (
    CheckpointError,
    CheckpointInUseError,
    CorruptLogError,
    LogConflictError,
    LogUnavailableError,
)
from trident.log.folders import Folder, folder_of
from trident.log.held import HeldCheckpoint
from trident.log.log import Log
from trident.states.checkpoint_store import CheckpointStore, this_process
from trident.states.errors import CorruptStateError, StateUnavailableError


class StoredCheckpoint(HeldCheckpoint):
    """A checkpoint in a store, held by one run if the store knows holders; Spark's log is in a
    folder beside it."""

    def __init__(self, store: CheckpointStore, spark_checkpoint: Folder | None = None) -> None:
        self.where = store.where
        self._store = store
        self._spark_checkpoint = spark_checkpoint
        try:
            with reached(store):
                if (problem := store.probe()) is not None:
                    advice = "A checkpoint needs a store that respects them: take another."
                    raise CheckpointError(self.where, problem, advice)
                holder = store.hold()
        except BaseException:
            store.release()
            raise
        if holder is not None:
            store.release()
            raise CheckpointInUseError(self.where, holder, here=holder == this_process())

    def log(self, group: str) -> Log:
        return StoredLog(self._store, group)

    def groups(self) -> list[str]:
        with reached(self._store):
            return self._store.names()

    def folder(self, group: str) -> Folder:
        if self._spark_checkpoint is None:
            raise CheckpointError(
                self.where,
                f"the group {group} reads a streaming DataFrame, and Spark's own checkpoint can "
                "only be a folder",
                "Give one as spark_checkpoint= that a driver on any machine finds: the URL of a "
                "file system that Spark knows (s3a://bucket/words, for one), or the path of one "
                "that is mounted there.",
            )
        return self._spark_checkpoint.below(folder_of(group))

    def release(self) -> None:
        self._store.release()


class StoredLog(Log):
    """A log as one value of a checkpoint's store, which replaces only the value that the writer
    expects.

    An entry holds everything, so only the newest is kept. No two are equal, as each names its
    writer and its number: a request that arrives late finds another value than it expects. If an
    answer is lost, the same entry is appended again, which succeeds if it is stored already.
    """

    def __init__(self, store: CheckpointStore, group: str) -> None:
        super().__init__(store.place_of(group))
        self._store = store
        self._group = group
        self._known: EncodedEntry | None = None

    def newest(self) -> LogEntry | None:
        with reached(self._store, self.place):
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
        with reached(self._store, self.place):
            expected = None if known is None else known.data
            replaced = self._store.replace(self._group, new.data, expected)
        if not replaced:
            self.newest()
            raise LogConflictError(self.place, new.number)
        self._known = new

    def _check_kept(self, found: LogEntry | None) -> None:
        """Raise CorruptLogError if the store has lost an entry that it had acknowledged."""
        known = self._known
        if known is None or (found is not None and found.number >= known.number):
            return
        what = "nothing is there" if found is None else f"its number is {found.number}"
        raise CorruptLogError(
            self.place,
            f"{what}, and entry {known.number} was acknowledged: the store has lost an entry that "
            "it had confirmed",
        )

    def _check_size(self, new: EncodedEntry) -> None:
        largest = self._store.largest
        if largest is not None and len(new.data) > largest:
            raise CheckpointError(
                self._store.where,
                f"an entry of the log has {len(new.data)} bytes, and the store takes {largest}",
                "A spout's metadata is part of the entry. Use a checkpoint in a folder or in "
                "Redis: a new one, with adopt=Adopt.from_checkpoint(<this one>).",
            )


@contextmanager
def reached(store: CheckpointStore, log: str = "") -> Iterator[None]:
    """Raise errors of a checkpoint's store as errors of the checkpoint, or of a log."""
    place = log or store.where
    try:
        yield
    except StateUnavailableError as error:
        at = "" if error.place == place else f"{error.place}: "
        raise LogUnavailableError(place, f"{at}{error.problem}", error.advice) from error
    except CorruptStateError as error:
        if log:
            raise CorruptLogError(log, str(error)) from error
        raise CheckpointError(place, str(error), "Give another place.") from error
