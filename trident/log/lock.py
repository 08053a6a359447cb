"""One run a checkpoint, whoever started it."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from trident.log.errors import CheckpointError, CheckpointInUseError

_NAME = ".lock"


class CheckpointLock:
    """The exclusive hold on a checkpoint folder, from construction to :meth:`release`.

    The system gives it back when the process dies, however it dies.

    Parameters
    ----------
    folder : path
        The checkpoint; made where it doesn't exist.

    Raises
    ------
    CheckpointInUseError
        When another run holds it, in this process or another; names that process.
    CheckpointError
        When the folder can't be written, or its file system has no locks.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CheckpointError(
                str(folder),
                f"it can't be written ({error.strerror})",
                "Give a folder of a local file system that this user may write.",
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise CheckpointInUseError(str(folder), holder) from None
            raise CheckpointError(
                str(folder),
                f"its file system can't lock files ({error.strerror})",
                "Give a folder of a local file system.",
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        self._held = True

    def release(self) -> None:
        """Let the checkpoint go; may be repeated."""
        if self._held:
            self._held = False
            os.close(self._descriptor)
