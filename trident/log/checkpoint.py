"""Checkpoints: a folder that holds the logs of a topology's groups, or a store that does."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trident.backends.checkpoints import checkpoint_from_url
from trident.backends.state_url import StateURL
from trident.log.errors import CheckpointError
from trident.log.file_log import FileLog
from trident.log.folders import Folder, folder_of, group_of
from trident.log.held import HeldCheckpoint
from trident.log.lock import CheckpointLock
from trident.log.log import Log, MemoryLog
from trident.log.stored_checkpoint import StoredCheckpoint, reached
from trident.states.checkpoint_store import CheckpointStore
from trident.states.errors import StateURLError

Place = str | os.PathLike[str]
"""A folder or a URL."""

FolderAt = Callable[[Place], Folder]
"""Finds the folder of a path or URL, with the file systems that it knows."""

_SPARKS = ("metadata", "offsets", "commits")
"""What the folder of a Structured Streaming query holds."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


class Checkpoint(HeldCheckpoint):
    """A checkpoint folder, held by one run until :meth:`release`; raises if that is impossible."""

    def __init__(self, path: Place) -> None:
        self.path = local_path(path)
        self.where = str(self.path)
        self._lock = CheckpointLock(self.path)

    def log(self, group: str) -> Log:
        return FileLog(self.folder(group).path / "log")

    def groups(self) -> list[str]:
        return _groups_in(self.path)

    def folder(self, group: str) -> Folder:
        return Folder(self.path / folder_of(group))

    def release(self) -> None:
        self._lock.release()


class TemporaryCheckpoint(HeldCheckpoint):
    """Stands for a checkpoint if none is given: logs in memory, which end with the run."""

    where = "memory"

    def __init__(self) -> None:
        self._path: Path | None = None

    def log(self, group: str) -> Log:
        return MemoryLog(f"of {group} in memory")

    def groups(self) -> list[str]:
        return []

    def folder(self, group: str) -> Folder:
        """Return a folder for `group` that :meth:`release` removes; not made yet."""
        if self._path is None:
            self._path = Path(tempfile.mkdtemp(prefix="trident-"))
        return Folder(self._path / folder_of(group))

    def release(self) -> None:
        """Remove the folders; may be repeated."""
        path, self._path = self._path, None
        if path is not None:
            shutil.rmtree(path)


def hold_checkpoint(place: Place | None, spark_checkpoint: Folder | None = None) -> HeldCheckpoint:
    """Return the checkpoint at a folder or URL, held by the caller; a temporary one for None.

    Raises CheckpointError if it can't be used, CheckpointInUseError if another run holds it.
    """
    if place is None:
        return TemporaryCheckpoint()
    text = os.fspath(place)
    if is_local(text):
        if spark_checkpoint is not None:
            raise CheckpointError(
                text,
                "it is a folder, and spark_checkpoint= was given",
                "Leave that out: Spark's own checkpoint is in the folder.",
            )
        if all((local_path(text) / name).exists() for name in _SPARKS):
            raise CheckpointError(
                text,
                "it belongs to a query of Spark's own, whose offsets can't be taken over",
                "Give a new folder. The stream then begins as the options of its source say, such "
                "as Kafka's startingOffsets.",
            )
        return Checkpoint(text)
    return StoredCheckpoint(_store(text), spark_checkpoint)


def groups_at(place: Place) -> list[str]:
    """Return the groups of the checkpoint at `place`, whether it is held or not."""
    text = os.fspath(place)
    if is_local(text):
        return _groups_in(local_path(text))
    store = _store(text)
    try:
        with reached(store):
            return store.names()
    finally:
        store.release()


def local_folder(place: Place) -> Folder:
    """Return the folder of a local file system; raises as :func:`local_path`."""
    return Folder(local_path(place))


def local_path(path: Place) -> Path:
    """Return `path` as a local, absolute one.

    Raises CheckpointError for the URL of another file system, and one that says more than a folder.

    Examples
    --------
    >>> str(local_path("file:///data/check%20point"))
    '/data/check point'
    """
    text = os.fspath(path)
    if not is_local(text):
        raise CheckpointError(
            shown(text),
            "it is not a local file system",
            "Mount the file system, and give the path of a folder in it.",
        )
    if _SCHEME.match(text) is None:
        return Path(text).absolute()
    url = urlsplit(text)
    if url.netloc not in ("", "localhost") or url.query or url.fragment or not url.path:
        raise CheckpointError(
            shown(text),
            "a file: URL has the path of a folder on this machine, and no host and no options",
            "Write it file:///folder/name; in names ? is %3F and # is %23.",
        )
    return Path(unquote(url.path)).absolute()


def _groups_in(path: Path) -> list[str]:
    folders = sorted(path.iterdir()) if path.is_dir() else []
    return [group_of(folder.name) for folder in folders if folder.is_dir()]


def is_local(text: str) -> bool:
    """Whether a path, or a URL of a local file system."""
    found = _SCHEME.match(text)
    return found is None or found[1].lower() == "file"


def _store(text: str) -> CheckpointStore:
    try:
        return checkpoint_from_url(StateURL.parse(text))
    except StateURLError as error:
        problem, _, advice = str(error).partition(". ")
        default = "Give a folder, or the URL of Redis, ZooKeeper or an object store."
        raise CheckpointError(shown(text), problem.rstrip("."), advice or default) from None


def shown(place: Place) -> str:
    """Return a folder or URL as errors may show it, without a password.

    Examples
    --------
    >>> shown("redis://me:secret@cache/0?prefix=words"), shown("/data/words")
    ('redis://me:***@cache/0?prefix=words', '/data/words')
    """
    text = os.fspath(place)
    if _SCHEME.match(text) is None:
        return text
    try:
        return str(StateURL.parse(text))
    except StateURLError:
        return f"{text.partition(':')[0]}:…"
