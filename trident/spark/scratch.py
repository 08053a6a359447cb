"""A private folder for what the Spark sessions of this process write to disk, with their log."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "trident-scratch-"
"""Not that of earlier versions: they remove folders of theirs that have no lock of their sort."""
_MARKER = ".trident-scratch"
"""A file that is locked while the process lives; a folder without it is not ours to remove."""


def scratch() -> Path:
    """This user's folder, removed with the process; if that is killed, by the next that calls
    this."""
    return _of_process(os.getpid())


def clear_scratch() -> None:
    """Remove all that sessions put in the folder; the JVM still puts its temporary files there."""
    _empty(scratch())


@cache
def _of_process(process: int) -> Path:
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if (lock := _lock_left(path)) is not None:
            _remove(path, lock)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Another process may have locked it first, and so taken it for one left behind.
        if (lock := _lock_new(folder)) is not None:
            atexit.register(_remove_own, folder, lock, process)
            return folder


def _lock_left(folder: Path) -> int | None:
    """Lock a folder that a dead process of this user has left; None for any other folder."""
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return None
        lock = os.open(folder / _MARKER, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _lock_new(folder: Path) -> int | None:
    """Lock a folder that was just made; None where another process has removed it."""
    lock = os.open(folder / _MARKER, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:
        return lock  # this file system has no locks: no other process can hold one
    if (folder / _MARKER).exists():
        return lock
    os.close(lock)
    return None


def _remove_own(folder: Path, lock: int, process: int) -> None:
    if os.getpid() == process:  # a forked child has inherited this exit handler
        _remove(folder, lock)


def _remove(folder: Path, lock: int) -> None:
    with suppress(OSError):  # it is gone already
        _empty(folder)  # the marker goes last: a folder without it would stay for ever
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _empty(folder: Path) -> None:
    # A JVM that is about to end may remove, or make, a file at the same time.
    for path in folder.iterdir():
        if path.name == _MARKER:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
