"""What is wrong with rows, or with the table that they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trident.states.errors import StateError
from trident.states.printable import shortened


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
            f"{self.table}: two rows of one batch have the key {_shown(self.key)}, {why}; or "
            "combine the rows of a key before they are written."
        )


@dataclass(eq=False, repr=False)
class RefusedRowError(StateError):
    """The table refuses a row."""

    table: str
    """The table, and where it is."""
    reason: str
    """What the database says of it."""
    row: Mapping[str, Any] = field(default_factory=dict)
    """The row's columns and values; empty where it isn't known which row it is."""

    def __str__(self) -> str:
        row = f"the row ({_shown(self.row)})" if self.row else "a row"
        return (
            f"{self.table} refuses {row}: {self.reason.rstrip('.')}. Nothing of the batch is "
            "visible. Repair or filter such rows before they are written, or give "
            'on_bad_row="dead-letter".'
        )


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shortened(repr(value), 80)}" for name, value in values.items())
