"""A SQLite file that tasks of one machine write rows to, and what can go wrong in a task."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark import TaskContext

from tests.spark.files import wait_for
from trident.backends.rows.pipeline import Pipeline
from trident.backends.rows.sqlite import SQLite


@dataclass(frozen=True)
class SharedFile(SQLite):
    """Tasks write it, one after the other, as SQLite has one writer.

    Beside the file may lie files named ``die``, after which a task dies that has committed, and
    ``hold``, by which one waits for ``release`` before it writes. The first task takes them away.
    """

    hosted = "executor"

    @contextmanager
    def pipeline(self) -> Iterator[Pipeline]:
        if TaskContext.get() is not None and self._takes("hold"):
            wait_for(self.beside("release"))
        with super().pipeline() as pipeline:
            yield pipeline
        if TaskContext.get() is not None and self._takes("die"):
            os._exit(1)

    def left(self) -> list[tuple[object, ...]]:
        """The rows that wait in staging tables."""
        with closing(sqlite3.connect(self.path)) as connection:
            asked = (
                "SELECT name FROM sqlite_master WHERE name GLOB 'trident_t_*' AND type = 'table'"
            )
            [*names] = connection.execute(asked)
            assert names
            return [row for (name,) in names for row in connection.execute(f"SELECT * FROM {name}")]

    def beside(self, name: str) -> Path:
        """A file beside the database's."""
        return Path(self.path).with_name(name)

    def _takes(self, name: str) -> bool:
        try:
            self.beside(name).rename(self.beside(f"{name} taken"))
        except FileNotFoundError:
            return False
        return True
