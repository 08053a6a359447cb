"""What is wrong with rows, or with the table that they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.states.errors import StateError
from trident.states.printable import one_line, shortened

CHANGED = "Was a table changed, or dropped? Start again: the start says all that does not fit."
"""The advice for a statement that fails though the start has found the tables right."""

_SHOWN = 20
"""How many columns of a row an error shows."""


@dataclass(eq=False, repr=False)
class TableMismatchError(StateError):
    """The table does not take the rows of the stream."""

    table: str
    """The table and its database."""
    problems: Sequence[str]
    """All that does not fit, a line each."""

    def __str__(self) -> str:
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        return f"{self.table} does not take these rows:{lines}"


@dataclass(eq=False, repr=False)
class DuplicateKeyError(StateError):
    """Two rows of one batch have the same key, and nothing says which of them is the last."""

    table: str
    """The table and its database."""
    key: Mapping[str, Any]
    """The columns of the key, and their values."""
    order_by: str | None = None
    """The field that orders the rows, where the two have the same value in it."""

    def __str__(self) -> str:
        both, advice = "", "Give order_by= the field whose greatest value the last row has"
        if self.order_by:
            both = f" and the same {self.order_by}, which order_by= names"
            advice = "Give order_by= a field that differs"
        return (
            f"{self.table}: two rows of one batch have the key ({shown_row(self.key)}){both}. "
            "Only one of them can be the last row of its key, and nothing says which. Nothing of "
            f"the batch is visible. {advice}; or combine the rows of a key before they are "
            "written. Then start again."
        )


@dataclass(eq=False, repr=False)
class RefusedRowError(StateError):
    """The table refuses a row; the run stops, and the batch is kept for the next start."""

    table: str
    """The table and its database."""
    reason: str
    """What the database says of it."""
    column: str | None = None
    """The column that the database names, if it does."""
    row: str = ""
    """The row's columns and values, shortened; empty if it isn't known which row it is."""
    position: str = ""
    """The batch and its attempt, and the tuple's position in its source."""

    def __str__(self) -> str:
        row = f"the row ({self.row})" if self.row else "a row"
        row += f" of {self.position}" if self.position else ""
        column = f"column {self.column}: " if self.column else ""
        return (
            f"{self.table} refuses {row}: {column}{self.reason.rstrip('.')}. Nothing of the batch "
            "is visible. Change the table; or repair or filter such rows before they are written; "
            'or give on_bad_row="dead-letter". Then start again.'
        )


@dataclass(eq=False, repr=False)
class TooManyBadRowsError(StateError):
    """A table refuses more rows of one batch than can be put aside."""

    table: str
    """The table and its database."""
    most: int
    """How many rows of a batch may be bad."""
    reason: str
    """What the database says of one of them."""

    def __str__(self) -> str:
        return (
            f"{self.table} refuses more than {self.most:,} rows of one batch, which is the most "
            f"that are put aside. The reason for one of them: {self.reason.rstrip('.')}. Nothing "
            "of the batch is visible. Compare the table's columns and constraints with what the "
            "stream makes, change one of the two, and start again."
        )


def shown_row(values: Mapping[str, Any]) -> str:
    """Show the columns and values of a row in one line; long values are shortened."""
    found = [f"{name}={shortened(repr(value), 80)}" for name, value in values.items()]
    return one_line(", ".join(found[:_SHOWN] + ["…"] * (len(found) > _SHOWN)))
