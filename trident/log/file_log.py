"""The coordinator log as files of a local folder."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trident.log.entry import LogEntry
from trident.log.errors import CorruptLogError, LogConflictError, LogUnavailableError
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
    number may be free because a later writer has purged it; so the entry counts only if a listing
    afterwards shows no higher one, else it is removed again. Old entries are purged; the newest,
    which holds everything, never is. If the very same entry is there already, an append of ours has
    failed before the folder was synced: it is put there once more.

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
        with self._disk():
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
        with self._disk():
            make_folder(self.folder)
            data, path = entry.encode(), self._path(entry.number)
            self._write_aside(data)
            try:
                self._put(path, data)
            except (FileExistsError, FileNotFoundError):  # a later writer has taken or swept it
                self._aside.unlink(missing_ok=True)
                raise LogConflictError(self.place, entry.number) from None
            sync_folder(self.folder)
            names = os.listdir(self.folder)
            numbers = _numbers(names)
            if max(numbers) > entry.number:
                path.unlink(missing_ok=True)  # the later writer may have purged it
                self._aside.unlink(missing_ok=True)
                raise LogConflictError(self.place, entry.number)
        old = [self._path(number) for number in numbers if number <= entry.number - _KEPT]
        aside = [self.folder / name for name in names if name.endswith(".tmp")]
        for useless in old + aside:  # written aside by this run, or by one that died
            with suppress(OSError):  # the next append tries it again
                useless.unlink()

    def _write_aside(self, data: bytes) -> None:
        # What an append left that failed may be linked: writing into it would change the entry.
        self._aside.unlink(missing_ok=True)
        with open(self._aside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _put(self, path: Path, data: bytes) -> None:
        """Give the file aside its name; FileExistsError where another entry has it."""
        try:
            os.link(self._aside, path)
        except FileExistsError:
            if path.read_bytes() != data:
                raise
            # Ours, and its sync failed. To sync again would prove nothing: the system may have
            # forgotten by now what it could not write. So the folder is changed anew.
            os.replace(self._aside, path)

    @contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LogUnavailableError(self.place, str(error)) from error

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:020d}.json"


def _numbers(names: list[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := _ENTRY.fullmatch(name))]
