"""The lock that only one run of a checkpoint can hold."""

from __future__ import annotations

import errno
import fcntl
import os
import weakref
from pathlib import Path

from trident.log.errors import CheckpointError, CheckpointInUseError
from trident.log.folders import make_folder

_NAME = ".lock"
_locks: weakref.WeakSet[CheckpointLock] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    for lock in list(_locks):
        lock.close()


# A forked child inherits the descriptor, and would keep the lock after its parent's death.
os.register_at_fork(after_in_child=_leave_to_the_parent)


class CheckpointLock:
    """The exclusive hold on a checkpoint folder, until :meth:`release` or the process's death."""

    def __init__(self, folder: Path) -> None:
        try:
            make_folder(folder)
            self._descriptor = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CheckpointError(
                str(folder),
                f"it can't be written ({error.strerror})",
                "Give a folder of a local file system that this user may write.",
            ) from error
        found = os.fstat(self._descriptor)
        self._file = found.st_dev, found.st_ino
        self._held = False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                # Not by the pid: a process of another container may have the same.
                here = any(lock._held and lock._file == self._file for lock in list(_locks))
                raise CheckpointInUseError(str(folder), holder, here) from None
            raise CheckpointError(
                str(folder),
                f"its file system can't lock files ({error.strerror})",
                "Give a folder of a local file system.",
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        self._held = True
        _locks.add(self)

    def release(self) -> None:
        """Let the checkpoint go; may be repeated."""
        if self._held:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for a child being forked now
        self.close()

    def close(self) -> None:
        """Close the descriptor without giving back the lock; may be repeated."""
        if self._held:
            self._held = False
            os.close(self._descriptor)
