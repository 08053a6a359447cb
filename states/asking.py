"""Reads in two steps: ``ask(keys)`` sends a request, and returns a function that waits for it.

A reader of several stores asks all of them before it waits for any.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Wait: TypeAlias = Callable[[], T]
"""Waits for an answer and returns it; called once, or never."""

Reading: TypeAlias = Generator[None, None, T]
"""A read that yields after it has asked its store, and returns the answer."""

_ASKS = {"multiGet": "ask", "getControl": "askControl"}
"""The plain reads of maps and states, each with the method that asks for the same."""


class Askable:
    """Has plain reads, and methods that ask for the same.

    If a subclass replaces only the plain read, asking calls that: its author may not know of more.
    So a plain read must not call ``self.ask``.
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


def begin_read(read: Reading[T]) -> Wait[T]:
    """Run a read until it would wait; return a function that runs the rest."""
    try:
        next(read)
    except StopIteration as end:
        answer: T = end.value
        return lambda: answer
    return partial(finish_read, read)


def finish_read(read: Reading[T]) -> T:
    """Run a read to its end."""
    while True:
        try:
            next(read)
        except StopIteration as end:
            found: T = end.value
            return found


def wait_for(waits: list[Wait[T]]) -> list[T]:
    """Wait for all answers; if one fails, the other reads are given up at once."""
    try:
        return [wait() for wait in waits]
    finally:
        waits.clear()  # with the connections that they hold
