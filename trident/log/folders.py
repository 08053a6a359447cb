"""The folders of a checkpoint, and how they survive a loss of power."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote


def group_folder(checkpoint: Path, group: str) -> Path:
    """Return the folder of `group`, whatever characters its id holds.

    Examples
    --------
    >>> str(group_folder(Path("/data"), "a/b"))
    '/data/a%2Fb'
    """
    name = quote(group, safe=" ")
    return checkpoint / (f"%2E{name[1:]}" if name.startswith(".") else name)


def group_of(folder: Path) -> str:
    """Return the group whose folder this is."""
    return unquote(folder.name)


def make_folder(folder: Path) -> None:
    """Make `folder` and its missing parents, so that they survive a loss of power.

    It may be called again after an error: what could not be synced is not there any more.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        try:
            sync_folder(path.parent)
        except OSError:
            with suppress(OSError):
                path.rmdir()
            raise


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
