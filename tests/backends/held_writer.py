"""A process that stops in the middle of a write and says so; run by test_sqlite_processes."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from trident.backends.sqlite import SQLiteStore
from trident.states.control import Control, ControlRecord
from trident.states.serializers import JSONSerializer
from trident.states.values import Token

KEYS = [f"word{number}".encode() for number in range(100_000)]
VALUES = [True if number == 50_000 else 10 for number in range(100_000)]
"""What the first batch stored: one value is not a number, so Python is asked to add to it."""


class HeldSerializer(JSONSerializer):
    """Creates `marker` when it is first asked for a value, and never answers."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def deserialize(self, data: bytes) -> Any:
        self._marker.touch()
        while True:
            signal.pause()


def main(path: str, marker: str) -> None:
    """Begin batch 2 and add 1 to every key, until half of them."""
    store = SQLiteStore(path, "words", serializer=HeldSerializer(Path(marker))).open()
    record = ControlRecord("a1", Token(2, 0), 1, {})
    Control(store).begin(record)
    store.multiAddFenced(KEYS, [1] * len(KEYS), record.token, record.retried, record.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
