"""How a user's exception is shown: their frame first, then step, batch and tuple."""

from __future__ import annotations

import reprlib
import traceback
from collections.abc import Sequence
from typing import Any

from trident.states.errors import TridentError
from trident.states.tracebacks import LIBRARY
from trident.states.values import Token

_FRAMES = 3
_MESSAGE_LINES = 3


class OperationError(TridentError):
    """A user's operation raised; the run stops, and the batch is kept.

    The text is at most fifteen lines: the exception, the user's frames, the step and the line
    that declared it, the batch, the partition and the tuple. ``details`` has the whole traceback.
    All arguments are strings and numbers, so that it crosses processes by pickle or JSON.

    Parameters
    ----------
    error : str
        The exception's class and message.
    frames : sequence of str
        The user's frames, the innermost last, a file and a source line each.
    step : str
        The step of the topology, as in ``explain()``.
    declared : str
        ``file:line`` of the call that declared the step.
    txid, attempt : int or None
        The batch and its attempt; None outside a batch, as in a DRPC query.
    partition : int or None
        The partition, from 0.
    row : str or None
        The tuple at hand, shortened; None where the step had none or many.
    details : str
        The complete traceback.

    Examples
    --------
    >>> print(OperationError("ZeroDivisionError: division by zero", (), "each(price)", "job.py:34",
    ...                      3, 0, 1, "a=1, b=0", ""))
    ZeroDivisionError: division by zero
      in the step each(price), declared at job.py:34
      in batch 3, attempt 0, partition 1
      with the tuple a=1, b=0
    """

    def __init__(
        self,
        error: str,
        frames: Sequence[str],
        step: str,
        declared: str,
        txid: int | None,
        attempt: int | None,
        partition: int | None,
        row: str | None,
        details: str,
    ) -> None:
        super().__init__(
            error, tuple(frames), step, declared, txid, attempt, partition, row, details
        )
        self.error = error
        self.frames = tuple(frames)
        self.step = step
        self.declared = declared
        self.txid = txid
        self.attempt = attempt
        self.partition = partition
        self.row = row
        self.details = details
        self.cause: BaseException | None = None

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
        # ``cause`` stays behind: a user's exception need not pickle.
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
    """The `OperationError` for an exception that was just caught.

    Made where it was caught; ``cause`` is `error` in this process. Make `row` with `shown_tuple`.
    """
    summary = "".join(traceback.format_exception_only(error)).rstrip("\n")
    shown = OperationError(
        summary,
        _frames(error),
        step,
        declared,
        token.txid if token else None,
        token.attempt if token else None,
        partition,
        row,
        "".join(traceback.format_exception(error)),
    )
    shown.cause = error
    return shown


def shown_tuple(fields: Sequence[str], row: Sequence[Any]) -> str:
    """A tuple in one line, every long value shortened.

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
    """The frames of an error that was just caught which are none of the library's, as Python
    shows them, the innermost last."""
    return [_shown(frame) for frame in _of_users(traceback.extract_tb(error.__traceback__))]


def _frames(error: BaseException) -> list[str]:
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
