"""The folders of a checkpoint, and how they survive a loss of power."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote

from trident.log.errors import LogUnavailableError

SPARKS_LOG, STAGED = "spark", "staged"
"""What else the folder of a group of streaming DataFrames holds, beside the log."""


def folder_of(group: str) -> str:
    """Return the name of the folder of `group`, whatever characters its id holds.

    Examples
    --------
    >>> folder_of("a/b"), folder_of(".hidden")
    ('a%2Fb', '%2Ehidden')
    """
    name = quote(group, safe=" ")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def group_of(folder: str) -> str:
    """Return the group whose folder has this name."""
    return unquote(folder)


class Folder:
    """A folder of files, here a local one; after LogUnavailableError a file may exist or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"file://{path}"
        """Its URL, for Spark."""
        self.place = str(path)
        """How errors name it."""

    def below(self, name: str) -> Folder:
        """Return a folder in this one."""
        return Folder(self.path / name)

    def make(self) -> None:
        """Make it, unless it exists."""
        with disk(self.place):
            make_folder(self.path)

    def names(self) -> list[str]:
        """Return the names in it, in any order; none if it doesn't exist."""
        with disk(self.place):
            return os.listdir(self.path) if self.path.is_dir() else []

    def read(self, name: str) -> bytes | None:
        """Return what a file holds, and make it durable; None if there is no such file."""
        with disk(self.place), suppress(FileNotFoundError):
            with (self.path / name).open("rb") as file:
                data = file.read()
                os.fsync(file.fileno())
            sync_folder(self.path)
            return data
        return None

    def write(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        """Write a file durably: all of it or nothing, whenever the process dies."""
        with disk(self.place):
            make_folder(self.path)
            temporary = self.path / f"{secrets.token_hex(8)}.tmp"
            try:
                with temporary.open("xb") as file:
                    file.writelines(parts)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(self.path / name)
            finally:
                temporary.unlink(missing_ok=True)
            sync_folder(self.path)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with disk(self.place):
            (self.path / name).unlink(missing_ok=True)


@contextmanager
def disk(place: str) -> Iterator[None]:
    """Raise errors of a file system as errors of the log at `place`."""
    try:
        yield
    except OSError as error:
        raise LogUnavailableError(place, str(error)) from error


def make_folder(folder: Path) -> None:
    """Make `folder` and its parents durably; may be repeated, as a folder that can't be synced is
    removed."""
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
