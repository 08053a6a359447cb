"""What all who watch a page are shown: looked up at most once a second, whoever asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from time import monotonic

import orjson

from trident.page.shown import Shown
from trident.shared_call import SharedCall

_logger = logging.getLogger("trident")
_QUIET = 15.0
"""Seconds after which one who is shown nothing new is told that the server is there."""


class Feed:
    """Looks up what is shown, each time in a thread, and tells watchers what has changed.

    Nothing is looked up while nobody asks, and never twice at one time. Of a watcher only what it
    was sent last is kept.

    Looks are `every` seconds. One that takes longer than `patience` is not waited for: what was
    seen last is shown.
    """

    def __init__(
        self, look: Callable[[], Shown], every: float = 1.0, most: int = 100, patience: float = 2.0
    ) -> None:
        self._look = SharedCall(look, fresh=every)
        self._every = every
        self._most = most
        self._patience = patience
        self._watching = 0
        self._last: Shown | None = None
        self._closed = False

    @property
    def watching(self) -> int:
        return self._watching

    @property
    def full(self) -> bool:
        return self._watching >= self._most

    def close(self) -> None:
        """End what is sent to watchers."""
        self._closed = True

    async def latest(self) -> Shown:
        """What is shown now, or was a moment ago; raises TimeoutError where nothing was yet."""
        try:
            self._last = await self._look.within(self._patience)
        except TimeoutError:
            if self._last is None:
                raise
        return self._last

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Server-sent events: at first all that is shown, then what has changed."""
        self._watching += 1
        try:
            sent: Shown | None = None
            told = monotonic()
            yield b"retry: 2000\n\n"
            while not self._closed:
                try:
                    now = await self.latest()
                    changed = now.since(sent)
                except Exception:
                    _logger.debug("the page has no figures", exc_info=True)
                else:
                    sent = now
                    if changed:
                        told = monotonic()
                        yield b"data: " + orjson.dumps(changed) + b"\n\n"
                if monotonic() - told > _QUIET:
                    told = monotonic()
                    yield b": nothing new\n\n"
                await asyncio.sleep(self._every)
        finally:
            self._watching -= 1
