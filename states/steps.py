"""Reads in steps, so that several stores are waited for together and not one after the other.

A read in steps is a generator. It yields where it has asked its store and would wait for the
answer, and returns what it has read. Whoever runs several goes over all of them before any waits.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]


def reads_in_steps(kind: type, call: str, steps: str) -> bool:
    """Whether a class has a method that reads in steps, and no subclass has replaced the plain one.

    Who wrote the subclass may know of the plain one only.

    Parameters
    ----------
    kind : type
        The class.
    call, steps : str
        The names of the plain method and of the one in steps.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import OpaqueMap
    >>> class Doubled(OpaqueMap):
    ...     def multiGet(self, keys):
    ...         return [value and 2 * value for value in super().multiGet(keys)]
    >>> reads_in_steps(OpaqueMap, "multiGet", "read_steps")
    True
    >>> reads_in_steps(Doubled, "multiGet", "read_steps")
    False
    """
    for each in kind.__mro__:
        if steps in vars(each):
            return True
        if call in vars(each):
            return False
    return False


def entries_of(reader: Any, keys: Sequence[Any]) -> Steps[Any]:
    """Read keys of a map or a state in steps, where it reads so; else by its ``multiGet``."""
    if reads_in_steps(type(reader), "multiGet", "read_steps"):
        return (yield from reader.read_steps(keys))
    return reader.multiGet(keys)


def control_of(backing: Any) -> Steps[bytes | None]:
    """Read the control record of a map in steps, where it reads so; else by ``getControl``."""
    found: bytes | None
    if reads_in_steps(type(backing), "getControl", "control_steps"):
        found = yield from backing.control_steps()
    else:
        found = backing.getControl()
    return found


def finished(steps: Steps[T]) -> T:
    """Run a read to its end.

    Examples
    --------
    >>> def read():
    ...     yield
    ...     return 5
    >>> finished(read())
    5
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


def together(reads: Sequence[Steps[T]]) -> list[T]:
    """Run several reads to their ends, by turns, and return what they return.

    What one raises is raised, and the others are closed, with the connections that they wait on.

    Examples
    --------
    >>> def read(name):
    ...     print("ask", name)
    ...     yield
    ...     print("wait for", name)
    ...     return name
    >>> together([read("a"), read("b")])
    ask a
    ask b
    wait for a
    wait for b
    ['a', 'b']
    """
    found: dict[int, T] = {}
    left = dict(enumerate(reads))
    try:
        while left:
            for place, steps in list(left.items()):
                try:
                    next(steps)
                except StopIteration as end:
                    found[place] = end.value
                    del left[place]
    finally:
        for steps in left.values():
            steps.close()
    return [found[place] for place in range(len(reads))]
