"""The databases that rows are tested on, each with tables of its own for a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sqlalchemy import select

from trident.backends.rows import Rows
from trident.backends.rows.catalog import catalog
from trident.backends.rows.target import Target
from trident.backends.rows.urls import database_from_url


@dataclass(frozen=True)
class Place:
    """A database, and a name for the table of one test."""

    url: str
    table: str

    @staticmethod
    def at(url: str) -> Place:
        """A place of its own in the database at a URL."""
        return Place(url, f"t{uuid4().hex[:12]}")

    def rows(self, key: str | None = None, **options: Any) -> Rows:
        """What writes to the table."""
        return Rows(self.url, self.table, key, **options)

    def execute(self, statement: str) -> None:
        """Run a statement in which ``{table}`` stands for the table."""
        with database_from_url(self.url).transaction() as connection:
            connection.exec_driver_sql(statement.format(table=self.table))

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """What a statement in which ``{table}`` stands for the table returns."""
        with database_from_url(self.url).engine.connect() as connection:
            told = connection.exec_driver_sql(statement.format(table=self.table))
            return list(map(tuple, told))

    def found(self, columns: str = "*") -> list[tuple[Any, ...]]:
        """All rows of the table, in order."""
        return sorted(self.query(f"SELECT {columns} FROM {{table}}"), key=repr)

    def column(self, name: str) -> list[Any]:
        """The values of one column, in order."""
        return sorted(value for (value,) in self.found(name))

    def beside(self, word: str) -> Place:
        """Another table of the same test."""
        return Place(self.url, f"{self.table}_{word}")

    @property
    def staging(self) -> str:
        """The table in which rows wait."""
        states = catalog()
        kept = select(states.c.kept).where(states.c.name == self.table)
        with database_from_url(self.url).engine.connect() as connection:
            return Target.decode(connection.execute(kept).scalar_one()).staging

    def left(self) -> list[tuple[Any, ...]]:
        """What still waits."""
        return Place(self.url, self.staging).found()
