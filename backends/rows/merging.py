"""The statements that merge the rows of a batch into the user's table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trident.backends.rows.database import RowsDatabase, alchemy
from trident.backends.rows.errors import DuplicateKeyError
from trident.backends.rows.pipeline import Pipeline
from trident.backends.rows.target import DELETED, Target

if TYPE_CHECKING:
    from sqlalchemy import Connection, Executable, Subquery, Table

Change = Callable[[Any, Any], Any]
"""Makes the new value of a column, of its old value and the value of the new row."""


@dataclass(frozen=True)
class Merge:
    """The statements that merge rows, made once; `duplicate` finds a key that comes twice."""

    database: RowsDatabase
    target: Target
    duplicate: Executable | None
    changes: tuple[Executable, ...]

    def run(self, pipeline: Pipeline, parameters: Mapping[str, Any] | None = None) -> None:
        """Merge them in the open transaction; it raises DuplicateKeyError for two last rows of one
        key."""
        if self.duplicate is not None:  # first, as the changes would be refused for it
            found = pipeline.connection.execute(self.duplicate, parameters).first()
            _raise_duplicate(found, self.database, self.target)
        for change in self.changes:
            pipeline.add(change, parameters)


def make_merge(database: RowsDatabase, target: Target, table: Table, rows: Subquery) -> Merge:
    """Make the statements that merge rows of the staging table into the user's."""
    sql = alchemy()
    names = list(target.columns.values())
    others = [name for name in names if name not in target.key]
    if target.mode == "append":
        return Merge(
            database, target, None, (table.insert().from_select(names, _select(rows, names)),)
        )
    if target.mode == "add":
        rows = _sum_by_key(rows, target.key, others)
        added = dict.fromkeys(others, _add)
        made = database.upsert(table, target.key, added, _select(rows, names))
        return Merge(database, target, None, (made,))
    if target.order_by:
        rows = last_of_keys(rows, target)
    # No database finds that a row to delete and one to write have the same key.
    finds = database.finds_duplicates and not (target.order_by or target.delete_where)
    duplicate = None if finds else _select_duplicate(rows, target)
    changes: list[Executable] = []
    if target.delete_where:
        changes.append(_delete(table, rows, target.key))
        rows = sql.select(rows).where(sql.not_(rows.c[DELETED])).subquery()
    changed: Mapping[str, Change] = dict.fromkeys(others, _replace)
    changes.append(database.upsert(table, target.key, changed, _select(rows, names)))
    return Merge(database, target, duplicate, tuple(changes))


def _replace(old: Any, new: Any) -> Any:
    return new


def _add(old: Any, new: Any) -> Any:
    """Add numbers; null is nothing, as in SQL's ``sum``."""
    coalesce = alchemy().func.coalesce
    return coalesce(old + new, old, new)


def _select(rows: Subquery, names: Sequence[str]) -> Any:
    # SQLite takes what follows a SELECT without WHERE for a part of its FROM.
    return alchemy().select(*[rows.c[name] for name in names]).where(alchemy().true())


def _delete(table: Table, rows: Subquery, key: Sequence[str]) -> Executable:
    sql = alchemy()
    same = [table.c[name] == rows.c[name] for name in key]
    is_deleted = sql.exists(sql.select(rows.c[DELETED]).where(rows.c[DELETED], *same))
    return table.delete().where(is_deleted.correlate(table))


def _sum_by_key(rows: Subquery, key: Sequence[str], others: Sequence[str]) -> Subquery:
    sql = alchemy()
    keys = [rows.c[name] for name in key]
    sums = [sql.func.sum(rows.c[name]).label(name) for name in others]
    return sql.select(*keys, *sums).group_by(*keys).subquery()  # type: ignore[no-any-return]


def ranked(rows: Subquery, target: Target) -> Subquery:
    """Rows, and in a last column their rank in their key: 1 for the last, and for its equals."""
    sql = alchemy()
    order = rows.c[target.ordering]
    by = {"partition_by": [rows.c[name] for name in target.key]}
    place = sql.func.rank().over(order_by=[order.is_(None), order.desc()], **by)
    return sql.select(rows, place.label(None)).subquery()  # type: ignore[no-any-return]


def last_of_keys(rows: Subquery, target: Target) -> Subquery:
    """The last row of each key; several where they are equal in what orders them."""
    placed = ranked(rows, target)
    return alchemy().select(placed).where([*placed.c][-1] == 1).subquery()  # type: ignore[no-any-return]


def check_unique(
    connection: Connection, database: RowsDatabase, rows: Subquery, target: Target
) -> None:
    """Raise DuplicateKeyError for two rows of one key."""
    _raise_duplicate(connection.execute(_select_duplicate(rows, target)).first(), database, target)


def _select_duplicate(rows: Subquery, target: Target) -> Executable:
    """Select a key that two rows have."""
    sql = alchemy()
    keys = [rows.c[name] for name in target.key]
    found = sql.select(*keys).group_by(*keys).having(sql.func.count() > 1).limit(1)
    return found  # type: ignore[no-any-return]


def _raise_duplicate(found: Sequence[Any] | None, database: RowsDatabase, target: Target) -> None:
    if found is not None:
        key = dict(zip(target.key, found, strict=True))
        raise DuplicateKeyError(target.place_in(database), key, target.order_by)
