"""A process that stops in the middle of a write and says so; run by test_sqlite_processes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from trident.backends.sqlite import SQLiteStore
from trident.states.control import Control, ControlRecord
from trident.states.values import Token

KEYS = [f"word{number}".encode() for number in range(100_000)]


class HeldKeys(list[bytes]):
    """Keys that, half way through, create `marker` and never go on."""

    marker: Path

    def __iter__(self) -> Iterator[bytes]:
        for place, key in enumerate(super().__iter__()):
            if place == len(self) // 2:
                self.marker.touch()
                signal.pause()
            yield key


def main(path: str, marker: str) -> None:
    """Begin batch 2 and add 1 to every key, until half of them."""
    store = SQLiteStore(path, "words").open()
    record = ControlRecord("a1", Token(2, 0), 1, {})
    Control(store).begin(record)
    keys = HeldKeys(KEYS)
    keys.marker = Path(marker)
    store.multiAddFenced(keys, [1] * len(keys), record.token, record)


if __name__ == "__main__":
    main(*sys.argv[1:])
