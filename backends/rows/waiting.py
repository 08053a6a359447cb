"""The rows of a batch that wait in the staging table, and the statements that merge them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from trident.backends.rows.bad_rows import good_rows
from trident.backends.rows.database import RowsDatabase, alchemy
from trident.backends.rows.merging import Merge, make_merge
from trident.backends.rows.target import PART, Target
from trident.states.errors import CorruptStateError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table


@lru_cache
def merge_of(database: RowsDatabase, kept: str) -> Merge:
    """What merges the batches of a state that keeps its rows so."""
    target = Target.decode(kept)
    staging = staging_table(target, (PART, *target.staged))
    parts = alchemy().bindparam("parts", expanding=True)
    return make_merge(database, target, users_table(target), good_rows(staging, target, parts))


def check_whole(
    connection: Connection, database: RowsDatabase, staging: Table, parts: Mapping[int, int]
) -> None:
    """Raise CorruptStateError if rows that these parts wrote are missing."""
    sql = alchemy()
    counted = sql.select(sql.func.count()).where(staging.c[PART].in_(parts))
    found, due = connection.execute(counted).scalar_one(), sum(parts.values())
    if found != due:
        raise CorruptStateError(
            f"the table {staging.name} in {database}",
            f"it has {found} rows of a batch of {due}, so the database has lost some",
            "Restore it from a backup.",
        )


def users_table(target: Target) -> Table:
    """The user's table, with those of its columns that are filled."""
    return _table(target.schema, target.table, tuple(target.columns.values()))


def staging_table(target: Target, columns: tuple[str, ...]) -> Table:
    """The staging table of a target, with columns of any type."""
    return _table(target.schema, target.staging, columns)


@lru_cache
def _table(schema: str | None, name: str, columns: tuple[str, ...]) -> Table:
    """The same table each time, by which SQLAlchemy knows a statement that it has compiled."""
    sql = alchemy()
    return sql.Table(name, sql.MetaData(schema=schema), *map(sql.Column, columns))  # type: ignore[no-any-return]
