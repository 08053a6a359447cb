"""A checkpoint: the folder that holds the logs of a topology's groups."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from trident.log.errors import CheckpointError
from trident.log.file_log import FileLog
from trident.log.lock import CheckpointLock
from trident.log.log import Log, MemoryLog

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


class Checkpoint:
    """A checkpoint folder, held by one run from construction to :meth:`release`.

    Parameters
    ----------
    path : str or path
        A local folder, or a ``file:`` URL of one; made where it doesn't exist.

    Raises
    ------
    CheckpointError
        When it isn't local or can't be written.
    CheckpointInUseError
        When another run holds it.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(folder)
    ...     checkpoint.folder("words").name
    ...     checkpoint.release()
    'words'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = local_path(path)
        self._lock = CheckpointLock(self.path)

    def folder(self, group: str) -> Path:
        """Return the folder of `group`; not made yet."""
        return group_folder(self.path, group)

    def log(self, group: str) -> Log:
        """Return the log of `group`."""
        return FileLog(self.folder(group) / "log")

    def release(self) -> None:
        """Let another run have it; may be repeated."""
        self._lock.release()


class TemporaryCheckpoint:
    """What a run without a checkpoint has instead: logs in memory, gone with the run."""

    def __init__(self) -> None:
        self._path: Path | None = None

    def folder(self, group: str) -> Path:
        """Return a folder for `group` that :meth:`release` removes; not made yet."""
        if self._path is None:
            self._path = Path(tempfile.mkdtemp(prefix="trident-"))
        return group_folder(self._path, group)

    def log(self, group: str) -> Log:
        """Return a new log for `group`."""
        return MemoryLog(f"of {group} in memory")

    def release(self) -> None:
        """Remove the folders; may be repeated."""
        path, self._path = self._path, None
        if path is not None:
            shutil.rmtree(path)


def open_checkpoint(path: str | os.PathLike[str] | None) -> Checkpoint | TemporaryCheckpoint:
    """Return the checkpoint at `path`, held by the caller; a temporary one for None."""
    return TemporaryCheckpoint() if path is None else Checkpoint(path)


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return `path` as a local, absolute one.

    Raises
    ------
    CheckpointError
        When it is the URL of another file system.

    Examples
    --------
    >>> str(local_path("file:///data/check%20point"))
    '/data/check point'
    >>> local_path("hdfs://cluster/checkpoint")
    Traceback (most recent call last):
    ...
    trident.log.errors.CheckpointError: checkpoint hdfs://cluster/checkpoint: hdfs: is not a local
    file system. Give a local folder; the log needs exclusive creation, which only local ones have.
    """
    text = os.fspath(path)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(text).absolute()
    if scheme[1].lower() != "file":
        raise CheckpointError(
            text,
            f"{scheme[1]}: is not a local file system",
            "Give a local folder; the log needs exclusive creation, which only local ones have.",
        )
    return Path(unquote(urlsplit(text).path)).absolute()


def group_folder(checkpoint: Path, group: str) -> Path:
    """Return the folder of `group`, whatever characters its id holds.

    Examples
    --------
    >>> str(group_folder(Path("/data"), "a/b"))
    '/data/a%2Fb'
    """
    name = quote(group, safe=" ")
    return checkpoint / (f"%2E{name[1:]}" if name.startswith(".") else name)
