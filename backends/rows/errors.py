"""What is wrong with rows, or with the table that they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.states.errors import StateError
from trident.states.printable import one_line, shortened

CHANGED = "Was a table changed, or dropped? Start again: the start says all that does not fit."
"""What to do where a statement fails that the start's look at the tables has found right."""

_SHOWN = 20
"""How many columns of a row an error shows."""


@dataclass(eq=False, repr=False)
class TableMismatchError(StateError):
    """The table does not take the rows of the stream."""

    table: str
    """The table, and where it is."""
    problems: Sequence[str]
    """All that does not fit, a line each."""

    def __str__(self) -> str:
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        return f"{self.table} does not take these rows:{lines}"


@dataclass(eq=False, repr=False)
class DuplicateKeyError(StateError):
    """Two rows of one batch have the same key, and nothing says which of them is the last."""

    table: str
    """The table."""
    key: Mapping[str, Any]
    """The columns of the key, and their values."""
    order_by: str | None = None
    """The field by which the last row was to be known, in which the two are equal."""

    def __str__(self) -> str:
        why = "and nothing says which is the last. Give order_by= the field that does"
        if self.order_by:
            why = (
                f"and the same {self.order_by}, by which the last was to be known. Give order_by= "
                "a field that tells them apart"
            )
        return (
            f"{self.table}: two rows of one batch have the key {shown_row(self.key)}, {why}; or "
            "combine the rows of a key before they are written."
        )


@dataclass(eq=False, repr=False)
class RefusedRowError(StateError):
    """The table refuses a row; the run stops, and the batch is kept for the next start."""

    table: str
    """The table, and where it is."""
    reason: str
    """What the database says of it."""
    column: str | None = None
    """The column that is at fault, where the database tells it."""
    row: str = ""
    """The row's columns and values, shortened; empty where it isn't known which row it is."""
    position: str = ""
    """The batch and its attempt, and what the tuple tells of its source."""

    def __str__(self) -> str:
        row = f"the row ({self.row})" if self.row else "a row"
        row += f" of {self.position}" if self.position else ""
        column = f"column {self.column}: " if self.column else ""
        return (
            f"{self.table} refuses {row}: {column}{self.reason.rstrip('.')}. Nothing of the batch "
            "is visible. Mend the table, repair or filter such rows before they are written, or "
            'give on_bad_row="dead-letter"; then start again.'
        )


@dataclass(eq=False, repr=False)
class TooManyBadRowsError(StateError):
    """A table refuses more rows of one batch than are put aside one by one."""

    table: str
    """The table, and where it is."""
    most: int
    """How many rows of a batch may be bad."""
    reason: str
    """What the database says of one of them."""

    def __str__(self) -> str:
        return (
            f"{self.table} refuses more than {self.most:,} rows of one batch, one of them as: "
            f"{self.reason.rstrip('.')}. Nothing of the batch is visible. So many are hardly bad "
            "rows: look at the table and at what the stream makes, and start again."
        )


def shown_row(values: Mapping[str, Any]) -> str:
    """The columns and values of a row in a line, those that are long shortened."""
    found = [f"{name}={shortened(repr(value), 80)}" for name, value in values.items()]
    return one_line(", ".join(found[:_SHOWN] + ["…"] * (len(found) > _SHOWN)))
