"""Calls of plain functions: one for each tuple, with the values of its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat, starmap
from typing import Any

from trident.kernels.kernel import TupleKernel
from trident.kernels.task import Task
from trident.tuples.block import Block


@dataclass(frozen=True)
class CallingKernel(TupleKernel):
    """A kernel that calls plain functions; it checks all results together, then single ones."""

    def call(self, function: Callable[..., Any], block: Block, task: Task) -> list[Any]:
        """What the function returns for each tuple."""
        names = self.inputs.names
        if names:
            first, *others = map(block.values, names)
            pending: Iterator[Any] = iter(first)
            calls: Iterator[Any] = map(function, pending, *others)
        else:
            pending = repeat((), block.length)
            calls = starmap(function, pending)
        with task.at(self.step, names, block, pending):
            return one_for_each(calls, block.length)

    def check_each(
        self, made: Sequence[Any], check: Callable[[Any], Any], block: Block, task: Task
    ) -> list[Any]:
        """What `check` returns for the result of each tuple."""
        pending = iter(made)
        with task.at(self.step, self.inputs.names, block, pending):
            return one_for_each(map(check, pending), len(made))


def one_for_each(calls: Iterator[Any], length: int) -> list[Any]:
    """The results of the calls; raises where StopIteration of a function has ended them early."""
    made = list(calls)
    if len(made) != length:
        raise stop_iteration_error()
    return made


def stop_iteration_error() -> RuntimeError:
    """The error for a StopIteration of a function, which `map` would take for its own end."""
    return RuntimeError(
        "it raised StopIteration, as next() does when nothing is left: "
        "give next() a default, or raise another error"
    )
