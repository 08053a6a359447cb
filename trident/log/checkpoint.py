"""A checkpoint: the folder that holds the logs of a topology's groups."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable
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

    def check_groups(self, groups: Iterable[str]) -> None:
        """Refuse to leave a log behind, as a topology would whose stream has got another id.

        Raises
        ------
        CheckpointError
            When a group that is not among `groups` has a log here which no other checkpoint
            has taken over.
        """
        ours = {self.folder(group): group for group in groups}
        for folder in sorted(self.path.iterdir()):
            newest = FileLog(folder / "log").newest() if folder not in ours else None
            if newest is not None and newest.successor is None:
                raise CheckpointError(
                    str(self.path),
                    f"it has a log of the stream(s) {', '.join(newest.streams)}, up to batch "
                    f"{newest.committed}, in a group {unquote(folder.name)!r} that this topology "
                    f"does not have; its groups are: {', '.join(ours.values()) or 'none'} (each "
                    "is named by the smallest of its stream ids)",
                    "Give the streams their old ids, or start with a new checkpoint. Where those "
                    f"streams are gone for good, move {folder} away: what their states hold stays "
                    "in its store, but nothing goes on from there.",
                )

    def release(self) -> None:
        """Let another run have it; may be repeated."""
        self._lock.release()


class TemporaryCheckpoint:
    """In place of a checkpoint where none was given: logs in memory, which end with the run."""

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


def open_checkpoint(
    path: str | os.PathLike[str] | None, groups: Iterable[str]
) -> Checkpoint | TemporaryCheckpoint:
    """Return the checkpoint at `path` for `groups`, held by the caller; a temporary one for None.

    Raises
    ------
    CheckpointError, CheckpointInUseError
        See :class:`Checkpoint` and :meth:`Checkpoint.check_groups`.
    """
    if path is None:
        return TemporaryCheckpoint()
    held = Checkpoint(path)
    try:
        held.check_groups(groups)
    except BaseException:
        held.release()
        raise
    return held


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
