"""How a user's exception is shown: their frame first, then step, batch and tuple."""

from __future__ import annotations

import reprlib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trident.states.errors import TridentError
from trident.states.tracebacks import LIBRARY
from trident.states.values import Token

_FRAMES = 3
_MESSAGE_LINES = 3


@dataclass(eq=False, repr=False)
class OperationError(TridentError):
    """A user's operation raised; the run stops, and the batch is kept.

    The text is at most fifteen lines: the exception, the user's frames, the step and the line
    that declared it, the batch, the partition and the tuple. Its fields are texts and numbers, so
    that it crosses processes by pickle or JSON.

    Examples
    --------
    >>> print(OperationError("ZeroDivisionError: division by zero", (), "each(price)", "job.py:34",
    ...                      3, 0, 1, "a=1, b=0", ""))
    ZeroDivisionError: division by zero
      in the step each(price), declared at job.py:34
      in batch 3, attempt 0, partition 1
      with the tuple a=1, b=0
    """

    error: str
    """The exception's class and message."""
    frames: Sequence[str]
    """The user's frames, the innermost last: a file and a source line each."""
    step: str
    """The step of the topology, as in ``explain()``."""
    declared: str
    """``file:line`` of the call that declared the step."""
    txid: int | None
    """The batch; None outside a batch, as in a DRPC query."""
    attempt: int | None
    """The attempt of the batch; None outside a batch."""
    partition: int | None
    """The partition, from 0."""
    row: str | None
    """The tuple at hand, shortened; None if the step had none or many."""
    details: str
    """The complete traceback."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cause: BaseException | None = None
        """The exception, in the process that caught it."""

    def __str__(self) -> str:
        lines = _clip(self.error)
        lines += [line for frame in self.frames for line in frame.splitlines()]
        lines.append(f"  in the step {self.step}, declared at {self.declared}")
        place = []
        if self.txid is not None:
            place += [f"batch {self.txid}", f"attempt {self.attempt}"]
        if self.partition is not None:
            place.append(f"partition {self.partition}")
        if place:
            lines.append("  in " + ", ".join(place))
        if self.row is not None:
            lines.append(f"  with the tuple {self.row}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the cause: a user's exception need not pickle.
        return type(self), self.args


def operation_error(
    error: BaseException,
    *,
    step: str,
    declared: str,
    token: Token | None = None,
    partition: int | None = None,
    row: str | None = None,
) -> OperationError:
    """Return the `OperationError` of an exception that was just caught.

    Its ``cause`` is `error` in this process. Make `row` with `shown_tuple`.
    """
    summary = "".join(traceback.format_exception_only(error)).rstrip("\n")
    made = OperationError(
        summary,
        tuple(_shown_frames(error)),
        step,
        declared,
        token.txid if token else None,
        token.attempt if token else None,
        partition,
        row,
        "".join(traceback.format_exception(error)),
    )
    made.cause = error
    return made


def shown_tuple(fields: Sequence[str], row: Sequence[Any]) -> str:
    """Return a tuple in one line, with long values shortened.

    Examples
    --------
    >>> shown_tuple(["word", "n"], ["x" * 500, 3])
    "word='xxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxx', n=3"
    """
    short = reprlib.Repr()
    short.maxstring = short.maxother = 45
    names = list(fields) + ["?"] * (len(row) - len(fields))
    pairs = [f"{name}={short.repr(value)}" for name, value in zip(names, row, strict=False)]
    if len(pairs) > 12:
        pairs[12:] = [f"… {len(pairs) - 12} more"]
    return ", ".join(pairs).replace("\n", " ")


def user_frames(error: BaseException) -> list[str]:
    """Return the frames outside the library of an error that was just caught, the innermost last,
    as Python shows them."""
    return [_shown(frame) for frame in _of_users(traceback.extract_tb(error.__traceback__))]


def _shown_frames(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    chosen = _of_users(frames) or ([] if isinstance(error, TridentError) else frames[-1:])
    if len(chosen) > _FRAMES:
        # The user's own entry says what was attempted, the innermost ones what went wrong.
        chosen = [chosen[0], *chosen[1 - _FRAMES :]]
    return [_shown(frame) for frame in chosen]


def _of_users(frames: Sequence[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    return [frame for frame in frames if not frame.filename.startswith(LIBRARY)]


def _shown(frame: traceback.FrameSummary) -> str:
    line = f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
    return f"{line}\n    {frame.line}" if frame.line else line


def _clip(text: str) -> list[str]:
    lines = text.splitlines() or [""]
    lines = [line if len(line) <= 300 else line[:300] + "…" for line in lines]
    if len(lines) > _MESSAGE_LINES:
        lines = [*lines[: _MESSAGE_LINES - 1], f"… {len(lines) - _MESSAGE_LINES + 1} more lines"]
    return lines
