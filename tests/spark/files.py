"""A backing map in files, which tasks of any process reach, and which can hold a late writer."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trident.states.backing_map import IBackingMap


@dataclass(frozen=True)
class Files:
    """Opens the map of a folder; pickles.

    Parameters
    ----------
    folder : str
        Holds the map and what the tests put beside it.
    """

    folder: str

    def __call__(self) -> FileMap:
        return FileMap(Path(self.folder))


class FileMap(IBackingMap):
    """All entries in one JSON file, changed under a lock, so that writes can be fenced.

    Where a file ``hold`` lies beside it, the first writer takes it away and waits for a file
    ``release`` before it writes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "entries.json"

    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with self._locked() as entries:
            found = [entries.get(key.hex()) for key in keys]
        return [None if value is None else bytes.fromhex(value) for value in found]

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        with self._locked() as entries:
            self._put(entries, keys, values)

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        self._wait_if_held()
        with self._locked() as entries:
            if entries.get("control") != fence.hex():
                return False
            self._put(entries, keys, values)
            return True

    def getControl(self) -> bytes | None:
        with self._locked() as entries:
            found = entries.get("control")
        return None if found is None else bytes.fromhex(found)

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        with self._locked() as entries:
            if entries.get("control") != (None if expected is None else expected.hex()):
                return False
            entries["control"] = new.hex()
            return True

    @contextmanager
    def _locked(self) -> Iterator[dict[str, str]]:
        with (self._folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            text = self._path.read_text() if self._path.exists() else "{}"
            entries: dict[str, str] = json.loads(text)
            before = dict(entries)
            yield entries
            if entries != before:
                self._path.write_text(json.dumps(entries))

    def _put(self, entries: dict[str, str], keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        entries.update({key.hex(): value.hex() for key, value in zip(keys, values, strict=True)})

    def _wait_if_held(self) -> None:
        try:
            os.rename(self._folder / "hold", self._folder / "held")
        except FileNotFoundError:
            return
        wait_for(self._folder / "release")


class ListedMap(FileMap):
    """The same, which lists its entries."""

    def entries(self) -> list[tuple[bytes, bytes]]:
        with self._locked() as entries:
            found = {key: value for key, value in entries.items() if key != "control"}
        return [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in found.items()]


class ListedFiles(Files):
    """Opens that."""

    def __call__(self) -> ListedMap:
        return ListedMap(Path(self.folder))


def wait_for(path: Path, timeout: float = 60.0) -> None:
    """Wait until a file is there."""
    deadline = time.monotonic() + timeout
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {path} within {timeout} s")
        time.sleep(0.01)
