"""One read: to ask a store gives what waits for its answer.

``ask(keys)`` sends what has to be sent and returns a function; calling it waits, and returns the
answer. Whoever reads several stores asks them all before waiting for any.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Wait: TypeAlias = Callable[[], T]
"""Waits for an answer and returns it; called once, or never."""

Reading: TypeAlias = Generator[None, None, T]
"""A read that yields where it has asked its store, and returns what it has read."""

_ASKS = {"multiGet": "ask", "getControl": "askControl"}
"""The plain reads of maps and states, each with what asks for the same."""


class Askable:
    """Something that is read by a plain call, or asked first and waited for later.

    A subclass that replaces the plain call alone is asked by it: who wrote it may know no other. So
    a plain call must not be made of ``self.ask``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for plain, ask in _ASKS.items():
            if plain in vars(cls) and ask not in vars(cls):
                setattr(cls, ask, _asked_by(plain))


def _asked_by(plain: str) -> Callable[..., Wait[Any]]:
    def ask(self: Any, *keys: Any) -> Wait[Any]:
        return partial(getattr(self, plain), *keys)

    return ask


def asked(read: Reading[T]) -> Wait[T]:
    """Run a read up to where it would wait; what is returned runs the rest, or closes it."""
    try:
        next(read)
    except StopIteration as end:
        answer: T = end.value
        return lambda: answer
    return partial(finished, read)


def finished(read: Reading[T]) -> T:
    """Run a read to its end."""
    while True:
        try:
            next(read)
        except StopIteration as end:
            found: T = end.value
            return found


def wait_for(waits: list[Wait[T]]) -> list[T]:
    """Wait for all answers; where one fails, the other reads are given up at once."""
    try:
        return [wait() for wait in waits]
    finally:
        waits.clear()  # with the connections that they hold
