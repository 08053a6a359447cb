"""Listeners: functions of a user's that are called with events."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from typing import Any, Self

from trident.states.errors import UsageError

_logger = logging.getLogger("trident")


class Listening:
    """What ``listen()`` returns: ends the listening by :meth:`stop`, or at the end of its block.

    An error of `callback` fails nothing else: the first time it is logged as an error, with its
    frames, from then on at DEBUG.
    """

    def __init__(self, callback: Callable[[Any], object]) -> None:
        given: object = callback
        if not callable(given):
            what = f"listen: the callback can't be called, as it is {given!r:.200}"
            raise UsageError(what, "", (), "Give a function of one event.")
        self._callback = callback
        self._failed = False
        self.stopped = False
        """Whether it receives no more events."""

    def stop(self) -> None:
        """Receive no more events; may be called by the callback, and repeated. Doesn't wait."""
        self.stopped = True

    def tell(self, event: object) -> None:
        """Call the callback with an event, in this thread."""
        if self.stopped:
            return
        try:
            self._callback(event)
        except (Exception, SystemExit):
            level = logging.DEBUG if self._failed else logging.ERROR
            self._failed = True
            _logger.log(level, "a listener failed on a %s", type(event).__name__, exc_info=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Listeners:
    """The listeners of one thing; any thread adds some, and sends them events."""

    def __init__(self) -> None:
        self.all: tuple[Listening, ...] = ()
        """The listeners; some may have stopped."""
        self._lock = Lock()

    def add(self, callback: Callable[[Any], object]) -> Listening:
        """Have `callback` called with each event from now on."""
        listening = Listening(callback)
        with self._lock:
            others = [each for each in self.all if not each.stopped]
            self.all = (*others, listening)
        return listening

    def tell(self, event: object) -> None:
        """Send an event to all, in this thread."""
        for listening in self.all:
            listening.tell(event)
