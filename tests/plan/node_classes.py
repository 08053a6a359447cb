"""All kinds of step, found by themselves: a new one is due wherever this list is compared."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from trident.plan.nodes import Node


def node_classes() -> set[type[Node]]:
    """The classes of the library that plans are made of."""
    return {kind for kind in _below(Node) if kind.__module__.startswith("trident.")}


def _below(kind: type[Node]) -> Iterator[type[Node]]:
    for below in kind.__subclasses__():
        if not inspect.isabstract(below):
            yield below
        yield from _below(below)


def names(kinds: set[type[Node]]) -> str:
    """Their names, for a message."""
    return ", ".join(sorted(kind.__name__ for kind in kinds))
