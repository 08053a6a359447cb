"""State in a folder, ``shelf:folder?prefix=name``: each state one file, for what fits in memory."""

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from trident.backends.state_url import StateURL
from trident.states import IBackingMap, MapStateFactory, Store


def from_url(url: StateURL) -> MapStateFactory:
    """What the entry point names: makes the factory, and touches no file yet."""
    options = url.read()
    shelf = Shelf(os.path.abspath(url.local_path()), options.prefix)
    return MapStateFactory(shelf, options.kind, **options.state)


@dataclass(frozen=True)
class Shelf(Store):
    """Where a state is; goes by pickle to whoever opens it."""

    folder: str
    prefix: str | None
    hosted = "driver"

    @property
    def identity(self) -> tuple[str, str, str]:
        return "shelf", self.folder, self.prefix or "state"

    def named(self, prefix: str) -> Self:
        return self if self.prefix is not None else replace(self, prefix=prefix)

    def open(self) -> "ShelfMap":
        return ShelfMap(os.path.join(self.folder, f"{self.prefix or 'state'}.shelf"))


class ShelfMap(IBackingMap):
    """The entries of one file, which every write replaces as a whole."""

    def __init__(self, file: str) -> None:
        self.file = file

    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return list(map(self._entries().get, keys))

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        entries = self._entries() | dict(zip(keys, values, strict=True))
        with open(f"{self.file}.new", "wb") as file:
            pickle.dump(entries, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, self.file)  # a reader finds the old entries or the new ones

    def _entries(self) -> dict[bytes, bytes]:
        if not os.path.exists(self.file):
            return {}
        with open(self.file, "rb") as file:
            return dict(pickle.load(file))
