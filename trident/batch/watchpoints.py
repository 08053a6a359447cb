"""Named places in a batch where a test can stop, kill or watch it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trident.states.values import Token

POINTS = (
    "before begin",
    "after begin",
    "before write",
    "after write",
    "before ready",
    "after ready",
    "before commit",
    "after commit",
    "before announce",
    "after announce",
)
"""In the order in which a batch passes them; the engine runs the batch at ``write``."""

STAGING_POINTS = ("before stage", "after stage", "before unstage", "after unstage")
"""The further points of a staged batch: two before all others, and two after them."""

Watcher = Callable[[str, Token], None]

_watchers: tuple[Watcher, ...] = ()


def reached(point: str, token: Token) -> None:
    """Tell the watchers, if there are any, that `token` is at `point`."""
    for watcher in _watchers:
        watcher(point, token)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` at each point of a batch, in the batch's thread; it may raise there."""
    global _watchers
    _watchers = (*_watchers, watcher)
    try:
        yield
    finally:
        remaining = list(_watchers)
        remaining.remove(watcher)
        _watchers = tuple(remaining)
