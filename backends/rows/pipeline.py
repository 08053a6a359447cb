"""The statements of a transaction on their way to the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sqlalchemy import Connection, Executable


class Statement(NamedTuple):
    """A statement, its parameters, and what looks at its result; a text has no parameters."""

    sql: Executable | str
    parameters: Mapping[str, Any] | None = None
    check: Callable[[Any], None] | None = None


@dataclass(frozen=True)
class Pipeline:
    """A transaction whose statements wait until one is needed at once, or the transaction ends.

    Those that wait are sent together. A driver that can do so waits once for all their results.
    Made by ``RowsDatabase.pipeline()``.

    Examples
    --------
    >>> from trident.backends.rows.sqlite import SQLite
    >>> with SQLite("shop.db").pipeline() as pipeline:
    ...     pipeline.add("CREATE TABLE orders (id)")
    ...     pipeline.add("INSERT INTO orders VALUES (7)")
    ...     pipeline.connection.exec_driver_sql("SELECT id FROM orders").fetchall()
    [(7,)]
    """

    _run: Callable[[Connection, Sequence[Statement]], None]
    _connection: Connection
    _waiting: list[Statement]

    def add(
        self,
        sql: Executable | str,
        parameters: Mapping[str, Any] | None = None,
        check: Callable[[Any], None] | None = None,
    ) -> None:
        """Let a statement wait.

        Parameters
        ----------
        sql : Executable or str
            A statement of SQLAlchemy's, or a text, which has no parameters.
        parameters : mapping, optional
            Of the statement.
        check : callable, optional
            Gets the result, which has ``rowcount`` and ``fetchone()``, and may raise.
        """
        self._waiting.append(Statement(sql, parameters, check))

    @property
    def connection(self) -> Connection:
        """The connection, for what has to run at once: all that waits is sent before."""
        self.send()
        return self._connection

    def send(self) -> None:
        """Run what waits; raise the first error of a statement or a check."""
        waiting = self._waiting[:]
        self._waiting.clear()
        if waiting:
            self._run(self._connection, waiting)
