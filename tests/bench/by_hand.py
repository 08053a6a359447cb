"""What one would write without the library: counts in SQLite, each batch in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path


class Counts:
    """Word counts in a SQLite file, applied once a batch.

    Parameters
    ----------
    path : Path
        The file, made anew.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.executescript(
            """
            PRAGMA journal_mode = WAL;
            CREATE TABLE counts (word TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
            CREATE TABLE done (batch INTEGER NOT NULL);
            INSERT INTO done VALUES (-1);
            """
        )

    def add(self, batch: int, words: Iterable[str], amounts: Sequence[int]) -> None:
        """Add `amounts`, unless `batch` was added before."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        [last] = connection.execute("SELECT batch FROM done").fetchone()
        if last < batch:
            connection.executemany(
                "INSERT INTO counts VALUES (?, ?) "
                "ON CONFLICT (word) DO UPDATE SET n = n + excluded.n",
                zip(words, amounts, strict=True),
            )
            connection.execute("UPDATE done SET batch = ?", (batch,))
        connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def total_of(path: Path, table: str, column: str) -> int:
    """Return the sum of a column, to see that nothing was lost or counted twice."""
    with closing(sqlite3.connect(path)) as connection:
        [total] = connection.execute(f'SELECT total("{column}") FROM "{table}"').fetchone()
    return int(total)
