"""A checkpoint that is no folder: its logs are in a store, where any machine finds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trident.log.errors import CheckpointError, CheckpointInUseError, LogUnavailableError
from trident.log.folders import Folder, folder_of
from trident.log.held import HeldCheckpoint
from trident.log.log import Log
from trident.log.stored_log import StoredLog
from trident.states.checkpoint_store import CheckpointStore, this_process
from trident.states.errors import CorruptStateError, StateUnavailableError


class StoredCheckpoint(HeldCheckpoint):
    """A checkpoint in a store, held by one run if that can tell; Spark's log is in a folder beside
    it."""

    def __init__(self, store: CheckpointStore, spark_checkpoint: Folder | None = None) -> None:
        self.where = store.where
        self._store = store
        self._spark_checkpoint = spark_checkpoint
        try:
            with reached(store):
                if (problem := store.probe()) is not None:
                    advice = "A checkpoint needs a store that heeds them: take another."
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

    def _to_leave(self, group: str) -> str:
        return f"remove {self._store.place_of(group)}"


@contextmanager
def reached(store: CheckpointStore) -> Iterator[None]:
    """Raise what goes wrong with a checkpoint's store as errors of the checkpoint."""
    try:
        yield
    except StateUnavailableError as error:
        at = "" if error.place == store.where else f"{error.place}: "
        problem = f"{at}{error.problem}"
        raise LogUnavailableError(store.where, problem, error.advice) from error
    except CorruptStateError as error:
        raise CheckpointError(store.where, str(error), "Give another place.") from error
