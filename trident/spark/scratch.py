"""A private folder for what the sessions of this process leave on disk, their log included."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path

_PREFIX = "trident-spark-"


@cache
def scratch() -> Path:
    """The folder, which only this user can read; it goes with the process.

    Where a process was killed, the next one that calls this removes its folder: each is locked
    as long as its process lives.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _is_own(path) and (lock := _locked(path)) is not None:
            _remove(path, lock)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = _locked(folder)
        # Another process may have locked it first, and so taken it for one left behind.
        if lock is not None and folder.is_dir():
            atexit.register(_remove, folder, lock)
            return folder


def clear_scratch() -> None:
    """Remove all that is in the folder; the JVM still puts its temporary files there."""
    for path in scratch().iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _remove(folder: Path, lock: int) -> None:
    # A JVM that is about to end may remove, or make, a file at the same time.
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _is_own(path: Path) -> bool:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _locked(folder: Path) -> int | None:
    """A lock on a folder, which ends with the process; None where it is held, or gone."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
