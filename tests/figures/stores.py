"""A store that answers only when it is let go."""

from __future__ import annotations

import threading

from trident.backends.memory import MemoryMap

let_go = threading.Event()
let_go.set()
asked = threading.Semaphore(0)


class Store(MemoryMap):
    """As one on another machine, as far as others can tell."""

    lasts = True

    def getControl(self) -> bytes | None:
        asked.release()
        let_go.wait()
        return super().getControl()


def open_store() -> Store:
    """Open it, by the annotation."""
    return Store("tests.figures")
