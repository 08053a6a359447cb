"""What rows are written to, and how: the table, its key, and what becomes of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import orjson

from trident.states.errors import CorruptStateError, UsageError

Mode = Literal["upsert", "append", "add"]
OnBadRow = Literal["fail", "dead-letter"]

PART = "trident_part"
"""The column of the staging table that tells which task wrote a row."""
DELETED = "trident_deleted"
"""The column of the staging table that tells whether a row is to be deleted."""
ORDER = "trident_order"
"""The column of the staging table by which the last row of a key is known, if the user's table has
none for it."""
NUMBER = "trident_row"
"""The column of the staging table that numbers the rows of a part, where a database needs a key or
bad rows are put aside."""
SOURCE = "trident_source"
"""The column of the staging table for the position of a row in its source."""
REASON = "trident_reason"
"""The column of the staging table for the reason why a row is bad; null for good rows."""
BAD = "trident_bad"
"""The column of the staging table that holds a bad row, as JSON."""


@dataclass(frozen=True)
class Target:
    """A table and what is done with the rows that reach it; immutable, and JSON in the catalog.

    Of a batch that waits to be merged the catalog says how, so that a run with other options, after
    a crash, merges it as it was meant.

    Parameters
    ----------
    table, schema : str, str or None
        The table's name, and that of its schema.
    key : sequence of str
        The columns that say which row of the table is meant; none where rows are appended.
    mode : str
        What becomes of a row whose key is there: see :class:`~trident.backends.rows.Rows`.
    columns : mapping of str to str
        The column of each field that is stored.
    order_by : str or None
        The field by which the last row of a key is known.
    delete_where : str or None
        The field that says which rows are deleted.
    on_bad_row : str
        What becomes of a row that the table refuses.
    """

    table: str
    schema: str | None = None
    key: tuple[str, ...] = ()
    mode: Mode = "upsert"
    columns: Mapping[str, str] = field(default_factory=dict)
    order_by: str | None = None
    delete_where: str | None = None
    on_bad_row: OnBadRow = "fail"
    staging: str = ""
    """The table, in the same schema, in which the rows of a batch wait."""

    @property
    def name(self) -> str:
        """The table as a user writes it."""
        return f"{self.schema}.{self.table}" if self.schema else self.table

    def place_in(self, database: object) -> str:
        """The table, as errors name it."""
        return f"the table {self.name} in {database}"

    def __str__(self) -> str:
        by = f" by {', '.join(self.key)}" if self.key else ""
        return f"Rows({self.name}, {self.mode}{by})"

    @property
    def ordering(self) -> str:
        """The staging table's column that `order_by` fills."""
        return self.columns.get(self.order_by or "", ORDER)

    @property
    def staged(self) -> list[str]:
        """The columns of the staging table that a row fills."""
        names = list(self.columns.values())
        names += [DELETED] * bool(self.delete_where)
        names += [ORDER] * (bool(self.order_by) and self.ordering == ORDER)
        return [*names, SOURCE, *[NUMBER, REASON, BAD] * self.dead_letters]

    @property
    def fields(self) -> list[str]:
        """The fields that are stored, or say what becomes of a row."""
        others = filter(None, [self.order_by, self.delete_where])
        return [*self.columns, *(name for name in others if name not in self.columns)]

    @property
    def dead_letters(self) -> bool:
        """Whether rows that the table refuses are put aside."""
        return self.on_bad_row == "dead-letter"

    def encode(self) -> str:
        """Return what the catalog keeps."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS).decode()

    @staticmethod
    def decode(text: str) -> Target:
        """The target that the catalog keeps; CorruptStateError for that of another version."""
        try:
            found = orjson.loads(text)
            return Target(**{**found, "key": tuple(found["key"])})
        except (ValueError, KeyError, TypeError) as error:
            what = "how rows are kept, in the table trident_rows"
            advice = "Restore it from a backup."
            raise CorruptStateError(what, f"{text[:80]!r} ({error})", advice) from error


def target_of(
    table: str | Sequence[str],
    key: str | Sequence[str] | None,
    mode: str | None,
    order_by: str | None,
    delete_where: str | None,
    on_bad_row: str,
) -> Target:
    """What the arguments of ``Rows`` say, as far as fields needn't be known; UsageError if
    wrong."""
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    parts = table.split(".", 1) if isinstance(table, str) else list(table)
    mode = mode or ("upsert" if keys else "append")
    problems = {
        f"table {table!r} is no name; write it as 'orders', 'shop.orders' or ('shop', 'orders')": (
            not 1 <= len(parts) <= 2 or not all(isinstance(part, str) and part for part in parts)
        ),
        f"mode={mode!r} needs key=, the columns that say which row is meant": (
            mode in ("upsert", "add") and not keys
        ),
        "mode='append' takes no key=: a row is added whatever is there. For one row a key use "
        "mode='upsert'": mode == "append" and bool(keys),
        f"order_by= and delete_where= belong to mode='upsert', found {mode!r}": (
            mode != "upsert" and bool(order_by or delete_where)
        ),
        f"key {keys!r} names a column twice": len({*keys}) < len(keys),
    }
    for option, given, known in (
        ("mode", mode, get_args(Mode)),
        ("on_bad_row", on_bad_row, get_args(OnBadRow)),
    ):
        if given not in known:
            raise UsageError(f"Rows: no {option} is", str(given), known)
    for problem, found in problems.items():
        if found:
            raise UsageError(f"Rows: {problem}")
    schema, name = parts if len(parts) == 2 else (None, parts[0])
    ways: Any = {"mode": mode, "on_bad_row": on_bad_row}
    return Target(name, schema, keys, order_by=order_by, delete_where=delete_where, **ways)
