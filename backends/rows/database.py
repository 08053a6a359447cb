"""What databases of SQL do each in their own way; all else is written once, over SQLAlchemy."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from trident.backends.rows.pipeline import Pipeline, Statement
from trident.states.errors import MissingDriverError
from trident.states.finding import Finding

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Connection, Engine, Executable, Select, Table


class RowsDatabase(ABC):
    """A database that rows are written to: where it is, and what only it does.

    Derive a frozen dataclass of what it takes to connect. It pickles, as each task connects by
    itself, and is hashable: a process keeps one engine of SQLAlchemy for each.

    For a database of your own write :meth:`connect`, :meth:`upsert` and :meth:`incarnation`; load
    and the others have defaults. The suite in ``trident.backends.rows.conformance`` tests it.
    """

    hosted: ClassVar[Literal["driver", "executor"]] = "executor"
    """Which process of Spark's writes: tasks, each its own rows, or the driver all of them."""
    extra: ClassVar[str] = "rows"
    """The extras of this package that bring SQLAlchemy and the driver."""
    zoned: ClassVar[bool] = True
    """Whether it has a type for moments, beside that for dates with a time of day."""
    adds_decimals: ClassVar[bool] = True
    """Whether a sum of decimals is exact."""
    numbered: ClassVar[bool] = False
    """Whether the staging table has a key, by which the rows of one task are found: their number
    beside their part."""
    pings: ClassVar[bool] = True
    """Whether a kept connection is tried by a statement; else :meth:`is_elsewhere` knows."""
    beginning: Sequence[str] = ()
    """The statements that begin a transaction, where the driver doesn't by itself."""
    finds_duplicates: ClassVar[bool] = False
    """Whether an upsert of two rows of one key is refused by the database itself."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, without secrets: ``host:port/database``, or the path of a file."""

    @property
    @abstractmethod
    def dialect(self) -> str:
        """The name of SQLAlchemy's dialect and driver: ``"postgresql+psycopg"``."""

    @property
    def name(self) -> str:
        """The dialect, without the driver."""
        return self.dialect.partition("+")[0]

    def __str__(self) -> str:
        return f"{self.name} at {self.place}"

    @abstractmethod
    def connect(self) -> Any:
        """Return a new connection of the driver's, outside a transaction, that begins them by
        itself or by :attr:`beginning`."""

    @abstractmethod
    def upsert(
        self, table: Table, key: Sequence[str], changed: Mapping[str, Any], rows: Select[Any]
    ) -> Executable:
        """Return a statement that inserts `rows` into `table`, or changes those of the same key.

        Parameters
        ----------
        table : Table
            What is written to.
        key : sequence of str
            Its columns that say which row is meant: a primary key, or a unique index.
        changed : mapping of str to callable
            For each other column a function of the column as it is there, and of that which was to
            be inserted, which returns the new value. Where there is none, nothing is changed.
        rows : Select
            What is inserted; its columns have the names of the table's.
        """

    @abstractmethod
    def incarnation(self, connection: Connection) -> str:
        """Return what changes where the server is started anew, or another takes over."""

    def load(self, connection: Connection, staging: Table, rows: pa.Table) -> None:
        """Insert rows into the staging table, in the transaction that is open.

        The columns of `rows` have the names of the table's, which may have more. By default by
        inserts of many rows.
        """
        connection.execute(staging.insert(), rows.to_pylist())

    def empty(self, pipeline: Pipeline, staging: Table) -> None:
        """Delete all rows of the staging table, in the transaction that is open."""
        pipeline.add(staging.delete())

    def options(self, connection: Connection, like: Table | None = None) -> Mapping[str, Any]:
        """Return what SQLAlchemy is told of a table that is made, beside its columns.

        Of the staging table, `like` is the user's, with whose rows it is compared.
        """
        return {}

    def refine(self, connection: Connection, table: Table) -> None:
        """Tell the user's table what SQLAlchemy doesn't see of how its columns are compared."""

    def misfits(self, table: Table) -> Iterator[str]:
        """Yield why rows can't be written to the user's table, whatever they are."""
        return iter(())

    def send(self, connection: Connection, statements: Sequence[Statement]) -> None:
        """Run statements in order; each result goes to the statement's check."""
        for sql, parameters, check in statements:
            if isinstance(sql, str):
                result = connection.exec_driver_sql(sql)
            else:
                result = connection.execute(sql, parameters)
            if check is not None:
                check(result)

    def is_elsewhere(self, connection: Any) -> bool:
        """Return whether a kept connection of the driver's leads to what isn't there any more."""
        return False

    def check_deferred(self, pipeline: Pipeline) -> None:
        """Have checked now what would be checked when the transaction is committed: by then the log
        says that the batch is, and no row can be refused any more."""

    def examine(self) -> Iterator[Finding]:
        """Yield what is found when somebody looks at it; nothing is made or changed."""
        with self.transaction() as connection:
            version = ".".join(map(str, connection.dialect.server_version_info or ()))
            yield Finding("ok", f"{self} answers (version {version})")

    def explain(self, error: Exception) -> Exception:
        """Return what is raised for an error of the driver's: what to do, and whether it passes."""
        return error

    @property
    def engine(self) -> Engine:
        """The engine of this process."""
        return _engine(self, os.getpid())

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Lend a connection in a transaction; it is committed at the end, rolled back after an
        error."""
        with self.pipeline() as pipeline:
            yield pipeline.connection

    @contextmanager
    def pipeline(self) -> Iterator[Pipeline]:
        """Lend a transaction whose statements are sent together, as :meth:`transaction` does."""
        with explained(self), self.engine.begin() as connection:
            pipeline = Pipeline(self.send, connection, [*map(Statement, self.beginning)])
            yield pipeline
            pipeline.send()


@contextmanager
def explained(database: RowsDatabase) -> Iterator[None]:
    """Turn what the driver raises about a database into errors that say what to do."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except (DBAPIError, database.engine.dialect.loaded_dbapi.Error) as error:
        raise database.explain(getattr(error, "orig", None) or error) from None


@cache
def _engine(database: RowsDatabase, process: int) -> Engine:
    """The engine of a process: a fork has one of its own."""
    sqlalchemy = alchemy(database.extra)
    try:
        made = sqlalchemy.create_engine(
            f"{database.dialect}://",
            creator=database.connect,
            # Named, as SQLAlchemy takes the URL for that of a database in memory.
            poolclass=sqlalchemy.QueuePool,
            pool_pre_ping=database.pings,
        )
    except ImportError as error:
        raise MissingDriverError("rows in a database", database.extra, str(error)) from None

    def check(connection: Any, *_: object) -> None:
        if database.is_elsewhere(connection):
            raise sqlalchemy.exc.DisconnectionError  # the pool makes another one

    sqlalchemy.event.listen(made, "checkout", check)
    return made  # type: ignore[no-any-return]


def alchemy(extra: str = "rows") -> Any:
    """Return the module `sqlalchemy`; `extra` is what installs it, and PyArrow."""
    try:
        import pyarrow  # noqa: F401
        import sqlalchemy
    except ImportError as error:
        raise MissingDriverError("rows in a database", extra, str(error)) from None
    return sqlalchemy
