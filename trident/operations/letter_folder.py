"""A folder that keeps dead letters: a file of JSON lines for each batch that has any."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal, NoReturn

from trident.backends.state_url import StateURL
from trident.log.errors import LogUnavailableError
from trident.log.folders import Folder, disk, folder_of, group_of
from trident.states.backing_map import IBackingMap
from trident.states.control import Control, ControlRecord
from trident.states.errors import (
    CorruptStateError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
    StateURLError,
)
from trident.states.map_state import ITupleCollection
from trident.states.state import Batch, StateFactory
from trident.states.values import StateType

_CONTROL, _LOCK = ".control", ".lock"
_FILE = re.compile(r"([0-9]{20})\.jsonl")
_PATIENCE = 10.0
"""Seconds to wait for the lock, which a process that was paused may hold."""


class LetterFiles(IBackingMap):
    """The files of a folder, and the control record, by which they count.

    A file is named by its batch, and is there as a whole or not at all. When an attempt begins, it
    removes the files of earlier ones that are not committed; so nothing else has to be looked up. A
    process holds a lock while it reads the record and acts on it.
    """

    def __init__(self, folder: Path) -> None:
        self.where = f"the folder {folder.parent}"
        self.prefix = group_of(folder.name)
        self._folder = Folder(folder)
        self._tidy = False

    def getControl(self) -> bytes | None:
        with self._disk():
            return self._folder.read(_CONTROL)

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        with self._alone():
            if self.getControl() != expected:
                return False
            after = ControlRecord.decode(new)
            if not self._tidy:  # what an earlier process has left
                for name in self._folder.names():
                    if name.endswith(".tmp") or (_txid(name) or 0) > after.committed:
                        self._folder.remove(name)
                self._tidy = True
            if expected is not None:
                before = ControlRecord.decode(expected)
                txid = before.token.txid
                goes_on = before.token == after.token and after.committed < txid
                counts = before.committed >= txid or after.is_committed(*before.token)
                if not goes_on and not counts:
                    self._folder.remove(_name(txid))
            self._folder.write(_CONTROL, [new])
        return True

    def write(self, record: ControlRecord, lines: Sequence[bytes]) -> None:
        """Write the file of a batch; StaleBatchError where a later attempt has begun."""
        with self._alone():
            if self.getControl() != record.encode():
                raise StaleBatchError(record.token)
            self._folder.write(_name(record.token.txid), lines)

    def lines(self, committed: int) -> Iterator[bytes]:
        """Yield the lines of all batches up to `committed`."""
        with self._disk():
            for name in sorted(self._folder.names()):
                if (txid := _txid(name)) is not None and txid <= committed:
                    yield from (self._folder.read(name) or b"").splitlines()

    def occupant(self) -> str | None:
        with self._disk():
            found = min(filter(_FILE.fullmatch, self._folder.names()), default=None)
        return found and f"the file {found}"

    def prefixes(self) -> list[str]:
        return prefixes_in(self._folder.path.parent)

    def multiGet(self, keys: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where} keeps letters by their batch, and no entries")

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where} keeps letters by their batch, and no entries")

    @contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except LogUnavailableError as error:
            raise StateUnavailableError(self.where, error.problem, error.advice) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of the folder."""
        with self._disk(), disk(self.where):
            self._folder.make()
            with (self._folder.path / _LOCK).open("ab") as file:
                deadline = monotonic() + _PATIENCE
                while True:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        if monotonic() > deadline:
                            problem = f"another process has had its lock for {_PATIENCE:g} s"
                            raise StateUnavailableError(self.where, problem) from None
                    sleep(0.01)
                yield


class LetterFolderState(ITupleCollection):
    """Writes a batch's letters to a file; made by `LetterFolder`, lives on the driver."""

    control: Control
    kind = StateType.OPAQUE
    names_attempts = False

    def __init__(self, files: LetterFiles) -> None:
        self.control = Control(files, str(files.prefix))
        self._files = files
        self._lines: list[bytes] = []

    def beginCommit(self, batch: Batch) -> None:
        self._lines = []

    def send(self, value: bytes) -> None:
        """Add a letter to the batch that has begun."""
        self._lines.append(value + b"\n")

    def commit(self, batch: Batch) -> None:
        lines, self._lines = self._lines, []
        if lines:
            assert isinstance(batch, ControlRecord)  # it is part of a topology
            self._files.write(batch, lines)

    def getTuples(self) -> Iterator[tuple[Any, ...]]:
        """Each committed letter, as a map has it: batch, number, and its other fields."""
        control = self.control.expect()
        numbers: dict[Any, int] = {}
        for line in self._files.lines(control.committed if control else 0):
            try:
                letter = dict(json.loads(line))
                batch = letter.pop("batch")
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                found = f"{line!r:.80} ({type(error).__name__}: {error})"
                raise CorruptStateError("a dead letter", found) from error
            numbers[batch] = numbers.get(batch, 0) + 1
            yield batch, numbers[batch], letter


@dataclass(frozen=True)
class LetterFolder(StateFactory):
    """Dead letters as files below a folder; those of each state in a folder of its own."""

    path: Path
    prefix: str | None = None

    kind = StateType.OPAQUE
    hosted: Literal["driver", "executor"] = field(default="driver", init=False)

    @staticmethod
    def of(url: StateURL) -> LetterFolder | None:
        """The folder of a URL, as ``file:letters?prefix=dead_letters.texts``; None of another
        scheme."""
        if url.scheme != "file":
            return None
        path, options = url.local_path(), url.read_own(prefix=str)
        if not path:
            raise StateURLError("file: the URL names no folder", "", (), "As in file:letters.")
        return LetterFolder(Path(path).absolute(), options.get("prefix"))

    @property
    def label(self) -> str:
        return "folder"

    @property
    def identity(self) -> tuple[str, ...]:  # type: ignore[override]
        """What tells these letters from others."""
        return "folder", str(self.path), self.prefix or ""

    def named(self, name: str) -> LetterFolder:
        """The same folder with `name` for its prefix, where it has none yet."""
        return self if self.prefix is not None else replace(self, prefix=name)

    def makeState(
        self, conf: Any = None, metrics: Any = None, partitionIndex: int = 0, numPartitions: int = 1
    ) -> LetterFolderState:
        return LetterFolderState(LetterFiles(self.path / folder_of(self.prefix or "state")))


def prefixes_in(folder: Path) -> list[str]:
    """The states whose letters are below a folder."""
    return sorted(group_of(each.parent.name) for each in folder.glob(f"*/{_CONTROL}"))


def _name(txid: int) -> str:
    return f"{txid:020d}.jsonl"


def _txid(name: str) -> int | None:
    found = _FILE.fullmatch(name)
    return int(found[1]) if found else None
