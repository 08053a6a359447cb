"""A line on the terminal that moves while Spark starts, which takes some seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import monotonic

_EVERY = 1.0


@contextmanager
def count_seconds() -> Iterator[None]:
    """Count the seconds there, and leave nothing; where the error output is no terminal, do
    nothing."""
    stream, seen = sys.stderr, False
    with suppress(AttributeError, ValueError):  # it is closed, or none, or only has write()
        seen = stream.isatty()
    if not seen:
        yield
        return
    over = Event()

    def write(line: str) -> None:
        with suppress(OSError, ValueError):  # Spark also starts without a terminal
            stream.write(f"\r\033[K{line}")
            stream.flush()

    def count() -> None:
        began = monotonic()
        while not over.is_set():
            write(f"Starting Spark ... {monotonic() - began:.0f} s")
            over.wait(_EVERY)

    counting = Thread(target=count, name="trident-starting", daemon=True)
    counting.start()
    try:
        yield
    finally:
        over.set()
        counting.join()
        write("")
