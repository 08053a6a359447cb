"""The coordinator log as files of a local folder."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from trident.log.entry import LogEntry
from trident.log.errors import CorruptLogError, LogConflictError, UnsyncedLogError
from trident.log.folders import make_folder, sync_folder
from trident.log.log import Log

_KEPT = 8
_ENTRY = re.compile(r"(\d{20})\.json")


class FileLog(Log):
    """One file an entry, created by ``link()``, which never replaces.

    Parameters
    ----------
    folder : str or path
        Made where it doesn't exist; must be on a local file system.

    Notes
    -----
    An entry is written aside and synced, linked to its number, and the folder is synced. The
    number may be free only because a later writer has purged it; so an entry counts only where a
    listing afterwards shows no higher one, else it is removed again. Old entries are purged, the
    newest never: it holds everything.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from trident.states.values import Token
    >>> with TemporaryDirectory() as folder:
    ...     log = FileLog(folder)
    ...     log.append(LogEntry(1, "me", "a1", begun=Token(1, 0), committed=0))
    ...     FileLog(folder).newest().writer
    'me'
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(os.fspath(folder))
        self.folder = Path(folder)
        self._aside = self.folder / f".{secrets.token_hex(6)}.tmp"

    def newest(self) -> LogEntry | None:
        while self.folder.is_dir() and (numbers := _numbers(os.listdir(self.folder))):
            number = max(numbers)
            path = self._path(number)
            try:
                data = path.read_bytes()
            except FileNotFoundError:  # purged or taken back since the listing
                continue
            entry = LogEntry.decode(data, str(path))
            if entry.number != number:
                raise CorruptLogError(str(path), f"it says that it is entry {entry.number}")
            return entry
        return None

    def append(self, entry: LogEntry) -> None:
        make_folder(self.folder)
        path = self._path(entry.number)
        with open(self._aside, "wb") as file:
            file.write(entry.encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(self._aside, path)
        except (FileExistsError, FileNotFoundError):  # a later writer has taken or swept it
            self._aside.unlink(missing_ok=True)
            raise LogConflictError(self.place, entry.number) from None
        try:
            sync_folder(self.folder)
        except OSError as error:
            # Everybody sees the entry, but it may be gone after a loss of power.
            raise UnsyncedLogError(str(path), str(error)) from error
        self._aside.unlink(missing_ok=True)
        names = os.listdir(self.folder)
        numbers = _numbers(names)
        if max(numbers) > entry.number:
            path.unlink(missing_ok=True)  # the later writer may have purged it
            raise LogConflictError(self.place, entry.number)
        old = [self._path(number) for number in numbers if number <= entry.number - _KEPT]
        left_by_the_dead = [self.folder / name for name in names if name.endswith(".tmp")]
        for useless in old + left_by_the_dead:
            useless.unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:020d}.json"


def _numbers(names: list[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := _ENTRY.fullmatch(name))]
