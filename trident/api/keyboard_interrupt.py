"""Ctrl-C while a program waits for its topology: the batch under way ends, then the program."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

_STOPPED = "the topology has stopped after its batch"


@contextmanager
def interruptible() -> Iterator[None]:
    """Within it Ctrl-C raises KeyboardInterrupt and does no more; a handler of the user's stays.

    PySpark's own handler would first cancel all jobs, also those of the batch under way.
    """
    found = signal.getsignal(signal.SIGINT)
    of_spark = (getattr(found, "__module__", None) or "").startswith("pyspark.")
    if not of_spark or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, found)


def interrupted() -> KeyboardInterrupt:
    """The KeyboardInterrupt to raise once all has stopped; uncaught, it prints no traceback.

    Python ends a program by SIGINT, which a shell shows as status 130, for KeyboardInterrupt itself
    only. So this is no subclass, and is told apart by its text.
    """
    if not isinstance(sys.excepthook, _Silently):
        sys.excepthook = _Silently(sys.excepthook)
    return KeyboardInterrupt(_STOPPED)


class _Silently:
    """Shows every uncaught error as before, except the one of `interrupted`."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown

    def __call__(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, KeyboardInterrupt) or error.args != (_STOPPED,):
            self._shown(kind, error, traceback)
