"""The coordinator log as files of a local folder."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trident.log.entry import EncodedEntry, LogEntry
from trident.log.errors import CorruptLogError, LogConflictError
from trident.log.folders import disk, make_folder, sync_folder
from trident.log.log import Log

_LARGEST = 60_000
"""A file of this many bytes is followed by another one."""
_FILE = re.compile(r"(\d{20})\.json")


@dataclass(slots=True)
class _OwnFile:
    """The file that a log has made, and appends to."""

    number: int
    path: Path
    size: int


class FileLog(Log):
    """Files of entries; only the log that has created a file writes it.

    docs/protocol.md, "The log decides", says how a writer goes on from another's entry. A file that
    is large enough is followed by the next. So is one in which an append has failed: the entry may
    be there, or a part of it, or only until a loss of power. Only the end of a file can be torn.
    Lower files are removed, as each entry holds everything.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(os.fspath(folder))
        self.folder = Path(folder)
        self._own: _OwnFile | None = None
        self._known: EncodedEntry | None = None

    def newest(self) -> LogEntry | None:
        with disk(self.place):
            newest = self._read()
        self._known = None if newest is None else EncodedEntry.of(newest)
        return newest

    def append(self, entry: LogEntry) -> None:
        own, self._own = self._own, None  # if this fails, nothing follows in the same file
        known, new = self._known, EncodedEntry.of(entry)
        with disk(self.place):
            follows = known is not None and known.number + 1 == new.number
            if own is not None and follows and own.size < _LARGEST:
                self._own = self._append_to(own, new)
            else:
                self._own = self._append_to_new(new)
        self._known = new

    def _append_to(self, own: _OwnFile, new: EncodedEntry) -> _OwnFile:
        try:
            descriptor = os.open(own.path, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:  # a later writer has removed it
            raise LogConflictError(self.place, new.number) from None
        try:
            _write(descriptor, new.data)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        if _numbers(os.listdir(self.folder))[-1:] != [own.number]:
            raise LogConflictError(self.place, new.number)
        own.size += len(new.data)
        return own

    def _append_to_new(self, new: EncodedEntry) -> _OwnFile:
        make_folder(self.folder)
        number = max([0, *_numbers(os.listdir(self.folder))]) + 1
        path = self._path(number)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            raise LogConflictError(self.place, new.number) from None
        try:
            if not self._may_follow(new):
                path.unlink(missing_ok=True)
                raise LogConflictError(self.place, new.number)
            try:
                _write(descriptor, new.data)
            except OSError:  # on a full disk the files of all tries would take the last room
                path.unlink(missing_ok=True)
                raise
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(self.folder)
        names = os.listdir(self.folder)
        if _numbers(names)[-1:] != [number]:
            raise LogConflictError(self.place, new.number)
        self._remove_below(number, names)
        return _OwnFile(number, path, len(new.data))

    def _may_follow(self, new: EncodedEntry) -> bool:
        """Whether the newest entry is the one before `new`, or already `new` itself."""
        newest = self._read()
        if newest is None:
            return new.number == 1
        found = EncodedEntry.of(newest)
        if found == new:  # a failed append has written it
            return True
        return found.number + 1 == new.number and self._known in (None, found)

    def _read(self) -> LogEntry | None:
        numbers: list[int] | None = None
        while numbers is None and self.folder.is_dir():
            numbers = _numbers(os.listdir(self.folder))
            lowest = numbers[0] if numbers else 1
            while numbers:
                path = self._path(numbers.pop())
                try:
                    data = path.read_bytes()
                except FileNotFoundError:  # removed since the listing: there is a higher one
                    numbers = None
                    break
                entry = LogEntry.last(data, str(path))
                if torn := LogEntry.torn(data):
                    self.damage = f"the last {torn} bytes of {path} are no entry"
                if entry is not None:
                    return entry
                if not numbers and lowest > 1:  # there was an entry, or no file would be missing
                    raise CorruptLogError(str(path), f"no entry is left in it, {len(data)} bytes")
        return None

    def _remove_below(self, number: int, names: list[str]) -> None:
        for lower in _numbers(names):
            if lower < number:
                with suppress(OSError):  # the next file tries it again
                    self._path(lower).unlink()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:020d}.json"


def _write(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    if written < len(data):
        raise OSError(f"only {written} of {len(data)} bytes were written")


def _numbers(names: list[str]) -> list[int]:
    """The numbers of the files among `names`, the highest last."""
    return sorted(int(match[1]) for name in names if (match := _FILE.fullmatch(name)))
