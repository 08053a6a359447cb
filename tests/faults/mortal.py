"""A map whose writer is killed in the middle of a write, which a copy of it goes on with.

Run as ``python -m`` it is that copy.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.spark.files import wait_for
from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.maps.factory import Store


@dataclass(frozen=True)
class Mortal:
    """Opens maps of a store in which writers die; pickles.

    Parameters
    ----------
    store : Store
        The store.
    folder : str
        Where writers are told to die, by a folder with a file ``die`` in it. That holds the name
        of another file there, for which the copy waits in the middle of its write: ``rerun``
        comes with the next writer, any other somebody else has to make.
    """

    store: Store
    folder: str

    def __call__(self) -> MortalMap:
        return MortalMap(self.store.open(), Path(self.folder))


class MortalMap(WrappedMap):
    """Dies in its next write where it is told to."""

    def __init__(self, inner: IBackingMap, folder: Path) -> None:
        super().__init__(inner)
        self._folder = folder

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        for half in self._folder.glob("*/half"):
            half.with_name("rerun").touch()
        for die in self._folder.glob("*/die"):
            try:
                die.rename(die.with_name("dead"))
            except FileNotFoundError:
                continue  # somebody else does
            self._leave_a_copy(die.parent, keys, values, fence)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner.multiPutFenced(keys, values, fence)

    def _leave_a_copy(self, place: Path, *write: Any) -> None:
        (place / "copy").write_bytes(pickle.dumps((self.inner, *write)))
        subprocess.Popen([sys.executable, "-m", __name__, str(place)], start_new_session=True)
        wait_for(place / "half")


def main(place: Path) -> None:
    """Write the first half, wait, write the second; leave in a file whether each was accepted."""
    backing, keys, values, fence = pickle.loads((place / "copy").read_bytes())
    middle = len(keys) // 2
    first = backing.multiPutFenced(keys[:middle], values[:middle], fence)
    (place / "half").touch()
    wait_for(place / (place / "dead").read_text())
    second = backing.multiPutFenced(keys[middle:], values[middle:], fence)
    (place / "answers.part").write_text(json.dumps([first, second]))
    (place / "answers.part").rename(place / "answers")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
