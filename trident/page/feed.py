"""What all watchers of a page see: looked up at most once a second, however many ask."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from time import monotonic

import orjson

from trident.page.content import Content
from trident.shared_call import SharedCall

_logger = logging.getLogger("trident")
_QUIET = 15.0
"""Seconds without news after which watchers get a sign that the server is alive."""


class Feed:
    """Looks up what is shown, each time in a thread, and sends watchers what has changed.

    Nothing is looked up while nobody asks, and never twice at one time. For a watcher only the last
    content that it was sent is kept.

    A look takes place every `every` seconds. If it takes longer than `patience`, the last content
    is shown.
    """

    def __init__(
        self,
        look: Callable[[], Content],
        every: float = 1.0,
        most: int = 100,
        patience: float = 2.0,
    ) -> None:
        self._look = SharedCall(look, fresh=every)
        self._every = every
        self._most = most
        self._patience = patience
        self.watching = 0
        self._last: Content | None = None
        self._closed = False

    @property
    def full(self) -> bool:
        return self.watching >= self._most

    def close(self) -> None:
        """End what is sent to watchers."""
        self._closed = True

    async def latest(self) -> Content:
        """Return the latest content; raises TimeoutError if there never was any."""
        try:
            self._last = await self._look.within(self._patience)
        except TimeoutError:
            if self._last is None:
                raise
        return self._last

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events: at first all that is shown, then what has changed."""
        self.watching += 1
        try:
            sent: Content | None = None
            last = monotonic()
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
                        last = monotonic()
                        yield b"data: " + orjson.dumps(changed) + b"\n\n"
                if monotonic() - last > _QUIET:
                    last = monotonic()
                    yield b": nothing new\n\n"
                await asyncio.sleep(self._every)
        finally:
            self.watching -= 1
