"""A step goes on without the tuples that its operation fails with."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import index
from time import monotonic
from traceback import format_exception_only
from typing import Any, NoReturn

from trident.errors import BadRowsError, EmittedValueError
from trident.kernels.kernel import BlockKernel, Kernel, TupleKernel
from trident.kernels.task import Task, UnnamedError
from trident.kernels.type_check import TypeCheckKernel
from trident.operations.counters import count_bad
from trident.operations.dead_letters import letter
from trident.operations.vectorised import Vectorised
from trident.states.values import own_copies
from trident.tuples.block import NOTHING, Block, joined
from trident.tuples.value_types import python_type

_logger = logging.getLogger("trident")
_FEW = 16
"""How many tuples run together after their block has failed. So the operation is handed each tuple
three times at most, and one bad tuple of thousands does not make a block of each."""
_SILENCE = 10.0
"""Seconds between two warnings of one step in one process."""
_CHANGEABLE = (list, dict, None)
"""The Python types of values that an operation may change; None is not known."""
_silent_until: dict[str, float] = {}


@dataclass(frozen=True)
class SparingKernel(BlockKernel):
    """Runs a kernel and the check of its output, and leaves out the tuples with which they fail.

    A whole block runs first; only if that fails, its tuples run in smaller parts. If there is a
    `keeper`, the id of the group, bad tuples become dead letters with all their `fields`.
    """

    kernel: Kernel
    check: TypeCheckKernel | None
    keeper: str | None
    fields: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kernel.operation is not self.operation:  # each partition has a copy of its own
            kernel = replace(self.kernel, operation=self.operation)
            object.__setattr__(self, "kernel", kernel)

    def apply(self, block: Block, task: Task) -> Block:
        bad: list[str] = []
        spared = self._run_batch if isinstance(self.operation, Vectorised) else self._run_tuples
        made = spared(block, task._replace(unnamed=True), bad)
        if task.counters is not None:
            count_bad(task.counters, self.step.text, len(bad), block.length)
        if bad:
            self._warn(bad, block, task)
        return made

    def _run_kernel(self, block: Block, task: Task) -> Block | Exception:
        """Return what the kernel makes of a block, or what it raised."""
        try:
            made = self.kernel.whole(block, task)
            return self.check.apply(made, task) if self.check else made
        except (UnnamedError, EmittedValueError) as error:
            return error.cause if isinstance(error, UnnamedError) else error

    def _copy(self, block: Block, task: Task) -> Block:
        """Copy values that the operation may change: a block that fails runs again, or is kept."""
        types = self.kernel.inputs.types if isinstance(self.kernel, TupleKernel) else {}
        names = [name for name, kind in types.items() if python_type(kind or "") in _CHANGEABLE]
        if not names:
            return block
        fresh = block.between(0, block.length)  # makes its own values of Arrow columns
        lists = [name for name in names if fresh.arrow(name) is None]
        with task._replace(unnamed=False).at(self.step):
            return fresh.added({name: own_copies(fresh.values(name)) for name in lists})
        raise AssertionError  # it never comes here

    def _run_tuples(self, block: Block, task: Task, bad: list[str]) -> Block:
        """What the good tuples become; the errors of the others go into `bad`."""
        made = self._run_kernel(self._copy(block, task), task)
        if isinstance(made, Block):
            return made
        if isinstance(made, MemoryError):
            self._raise(made, task)
        if block.length == 1:
            self._leave_out(block, _error_text(made), task, bad)
            return NOTHING
        size = 1 if block.length <= _FEW else _FEW
        parts = [block.between(start, start + size) for start in range(0, block.length, size)]
        return joined([self._run_tuples(part, task, bad) for part in parts])

    def _run_batch(self, block: Block, task: Task, bad: list[str]) -> Block:
        """The same, where the function says which rows of a record batch are bad."""
        while block.length:
            made = self._run_kernel(block, task)
            if isinstance(made, Block):
                return made
            rows = _bad_rows(made, block.length)
            if not rows:
                self._raise(made, task)
            for row, reason in rows.items():
                self._leave_out(block.between(row, row + 1), str(reason), task, bad)
            block = block.kept([row not in rows for row in range(block.length)], block.names)
        return NOTHING

    def _raise(self, error: Exception, task: Task) -> NoReturn:
        with task._replace(unnamed=False).at(self.step):
            raise error
        raise AssertionError  # it never comes here

    def _leave_out(self, one: Block, error: str, task: Task, bad: list[str]) -> None:
        bad.append(error)
        if self.keeper is not None and task.letters is not None:
            row = dict(zip(self.fields, one.tuple_at(0, self.fields), strict=True))
            task.letters.append(letter(self.keeper, task.batch, self.step.text, error, row))

    def _warn(self, bad: list[str], block: Block, task: Task) -> None:
        now = monotonic()
        if now >= _silent_until.get(self.step.text, 0.0):
            _silent_until[self.step.text] = now + _SILENCE
            _logger.warning(
                "%s, declared at %s, has left out %d of %d tuples of batch %s, the first for: %s",
                *(self.step.text, self.step.declared, len(bad), block.length, task.batch, bad[0]),
            )


def _error_text(error: Exception) -> str:
    return "".join(format_exception_only(error)).rstrip("\n")


def _bad_rows(cause: Any, length: int) -> Mapping[int, str]:
    """The rows of a record batch that its function calls bad; empty for another error, and for one
    that names a missing row."""
    rows = cause.rows if isinstance(cause, BadRowsError) else {}
    try:
        bad = {index(row): reason for row, reason in rows.items() if type(row) is not bool}
    except TypeError:
        return {}
    return bad if len(bad) == len(rows) and all(0 <= row < length for row in bad) else {}


def leaves_out(kernels: Iterable[Kernel]) -> bool:
    """Whether one of these kernels leaves bad tuples out, and counts them."""
    return any(isinstance(each, SparingKernel) for each in kernels)


def keeps_letters(kernels: Iterable[Kernel]) -> bool:
    """Whether one of these kernels makes dead letters."""
    return any(isinstance(each, SparingKernel) and each.keeper is not None for each in kernels)
