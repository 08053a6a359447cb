"""What one would write without the library: counts in a store, a batch at a time."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK = 2000
_TABLE = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE counts (word TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
"""


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
            f"{_TABLE} CREATE TABLE done (batch INTEGER NOT NULL); INSERT INTO done VALUES (-1);"
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


class Totals:
    """Word counts in a SQLite file, which replace those before.

    Parameters
    ----------
    path : Path
        The file, made anew.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.executescript(_TABLE)

    def put(self, words: Iterable[str], totals: Iterable[int]) -> None:
        """Put `totals` in the place of what there was."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO counts VALUES (?, ?) ON CONFLICT (word) DO UPDATE SET n = excluded.n",
            zip(words, totals, strict=True),
        )
        connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class _InRedis(ABC):
    """Writes numbers of words; called with the partitions of a DataFrame, in Spark's tasks."""

    def __init__(self, port: int, prefix: str) -> None:
        self._port = port
        self._prefix = prefix

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.connected() as client:
            for batch in batches:
                self.write(client, batch.column(0).to_pylist(), batch.column(1).to_pylist())
        return iter(())

    def connected(self) -> Any:
        """Return a client, to be closed."""
        from redis import Redis

        return Redis(port=self._port)

    def write(self, client: Any, words: Sequence[str], numbers: Sequence[int]) -> None:
        """Write the numbers of some words."""
        for start in range(0, len(words), _CHUNK):
            keys = [f"{self._prefix}:{word}" for word in words[start : start + _CHUNK]]
            self._write(client, keys, numbers[start : start + _CHUNK])

    @abstractmethod
    def _write(self, client: Any, keys: Sequence[str], numbers: Sequence[int]) -> None:
        """Write those of a few keys."""


class CountsInRedis(_InRedis):
    """Adds the counts of a partition to those in Redis, once more where a task runs again."""

    def _write(self, client: Any, keys: Sequence[str], numbers: Sequence[int]) -> None:
        sums = zip(keys, client.mget(keys), numbers, strict=True)
        client.mset({key: int(stored or 0) + n for key, stored, n in sums})


class TotalsInRedis(_InRedis):
    """Puts the counts of a partition in the place of those in Redis."""

    def _write(self, client: Any, keys: Sequence[str], numbers: Sequence[int]) -> None:
        client.mset(dict(zip(keys, numbers, strict=True)))


def total_of(path: Path, table: str, column: str) -> int:
    """Return the sum of a column, to see that nothing was lost or counted twice."""
    with closing(sqlite3.connect(path)) as connection:
        [total] = connection.execute(f'SELECT total("{column}") FROM "{table}"').fetchone()
    return int(total)


class CountsInPostgres:
    """Adds the counts of a partition to those in a table, once more where a task runs again.

    Called with the partitions of a DataFrame, in Spark's tasks.
    """

    def __init__(self, url: str, table: str) -> None:
        self._url = url
        self._table = table

    def create(self) -> None:
        """Make the table."""
        import psycopg

        with psycopg.connect(self._url) as connection:
            connection.execute(f"CREATE TABLE {self._table} (word text PRIMARY KEY, n bigint)")

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import psycopg

        with psycopg.connect(self._url) as connection:
            connection.execute(f"CREATE TEMPORARY TABLE given (LIKE {self._table}) ON COMMIT DROP")
            with connection.cursor().copy("COPY given FROM STDIN") as copy:
                for batch in batches:
                    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                    copy.write("".join([f"{word}\t{n}\n" for word, n in rows]))
            connection.execute(
                f"INSERT INTO {self._table} AS stored SELECT * FROM given "
                "ON CONFLICT (word) DO UPDATE SET n = stored.n + excluded.n"
            )
        return iter(())
