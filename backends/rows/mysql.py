"""Rows in MySQL and MariaDB, by PyMySQL."""

from __future__ import annotations

import re
import ssl
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from trident.backends.rows.database import RowsDatabase, alchemy
from trident.backends.rows.errors import CHANGED, RefusedRowError
from trident.backends.rows.merging import Change
from trident.backends.rows.pipeline import Pipeline
from trident.backends.rows.target import PART
from trident.backends.state_url import StateURL
from trident.states.errors import StateError, StateUnavailableError, StateURLError
from trident.states.finding import Finding

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Connection, Executable, Select, Table

_LOCKS = 30
"""Seconds to wait for another session's locks, at most. A session that asks nothing for half as
long is ended, and its transaction rolled back: before others give up waiting for its locks."""

# A value that does not fit is an error, 0 is no request for a new number, and a division by zero
# ends an upsert that meets another row than that of its key.
_MODES = "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION"
# With the default, REPEATABLE READ, statements lock gaps between rows too, where other tasks write.
_SESSION = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    f"SET SESSION sql_mode = '{_MODES}', time_zone = '+00:00'",
)
_ENGINES = ("innodb", "rocksdb", "ndbcluster")
"""Those that have transactions."""
_STATEMENT = 4_000_000
"""Bytes of rows in one insert, at most, if the server takes as many."""
_ROWS = 10_000

_LOCKED = (
    "Another session wrote or locked the same rows (SHOW ENGINE INNODB STATUS). The batch "
    "is retried."
)
_CUT = "The batch is retried. See the server's log: did it restart, or drop this client?"
_START = (
    "Start MariaDB there (apt-get install mariadb-server), or check host, port, tls= and firewall."
)
_LOGIN = "Give user and password in the URL: mysql://user:password@host/database."
_RIGHTS = (
    "Grant this user SELECT, INSERT, UPDATE and DELETE on the table, and CREATE and DROP beside it."
)
_ADVICE: Mapping[int, str] = {
    **dict.fromkeys((1020, 1205, 1213), _LOCKED),
    **dict.fromkeys((1053, 1317, 1927, 2006, 2013, 2055, 4031), _CUT),
    **dict.fromkeys((1044, 1045, 1698), _LOGIN),
    **dict.fromkeys((1142, 1143, 1227, 1370), _RIGHTS),
    1040: "Raise its max_connections: each task connects by itself.",
    1049: "Create it, or give another one.",
    1203: "Raise its max_user_connections: each task connects by itself.",
    1290: "It is read-only, as a replica is. Give the primary.",
    1665: "Set its binlog_format to ROW or MIXED: the log of statements knows no READ COMMITTED.",
    1792: "It is read-only. Give the primary.",
    1836: "It is read-only, as a replica is. Give the primary.",
    1021: "Make room on its disk.",
    1114: "Make room on its disk.",
    2003: _START,
}
# of a class that says less: a check, a trigger's SIGNAL, a value that no partition takes, JSON
_REFUSED = (1364, 1366, 1526, 1644, 3140, 3819, 4025)
_OTHER_ROW = 1365
_COLUMN = re.compile(
    r"column '(?:[^']*`)?([^'`]+)`?'(?: cannot be null| at row \d+$)", re.IGNORECASE
)


@dataclass(frozen=True)
class MySQL(RowsDatabase):
    """A database of a MySQL or MariaDB server.

    Parameters
    ----------
    host, port, database, user, password
        Where it is, and who connects.
    timeout : float
        Seconds to wait for the answer of a statement; a large batch is merged in one.
    tls : bool
        Connect by TLS, to a server whose certificate is valid for `host`.
    tls_ca, tls_cert, tls_key : str or None
        Files of the authority, by default the system's, and of the certificate and key of this
        client.
    """

    host: str
    database: str
    port: int = 3306
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout: float = 600.0
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    zoned = False
    numbered = True
    extra = "mysql"
    dialect = "mysql+pymysql"

    @property
    def place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}/{self.database}"

    def connect(self) -> Any:
        driver = _driver()
        try:
            made = driver.connect(
                host=self.host,
                port=self.port,
                user=self.user,
                password=self.password or "",
                database=self.database,
                charset="utf8mb4",
                connect_timeout=min(self.timeout, 10.0),
                read_timeout=self.timeout,
                write_timeout=self.timeout,
                client_flag=driver.constants.CLIENT.FOUND_ROWS,
                **self._security(),
            )
            patience = max(min(_LOCKS, int(self.timeout)), 2)
            times = f"innodb_lock_wait_timeout = {patience}, lock_wait_timeout = {patience}"
            for statement in (*_SESSION, f"SET SESSION wait_timeout = {patience // 2}, {times}"):
                made.query(statement)
        except driver.MySQLError as error:
            raise self.explain(error) from None
        return made

    def _security(self) -> Mapping[str, Any]:
        if not self.tls:
            return {}
        context = ssl.create_default_context(cafile=self.tls_ca)
        if self.tls_cert:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        return {"ssl": context}

    def upsert(
        self, table: Table, key: Sequence[str], changed: Mapping[str, Change], rows: Select[Any]
    ) -> Executable:
        from sqlalchemy.dialects.mysql import insert

        sql = alchemy()
        made = insert(table).from_select(list(rows.selected_columns.keys()), rows)
        names = [*key, *changed]
        # SQLAlchemy's own way, `made.inserted`, has each % twice.
        given = {name: sql.func.VALUES(sql.column(name)) for name in names}
        same = sql.and_(*[table.c[name] == given[name] for name in key])
        # It would change the row that has the same value in any unique index.
        kept = sql.func.IF(sql.literal_column("1") / same, table.c[key[0]], table.c[key[0]])
        values = {name: change(table.c[name], given[name]) for name, change in changed.items()}
        return made.on_duplicate_key_update({key[0]: kept, **values})

    def load(self, connection: Connection, staging: Table, rows: pa.Table) -> None:
        # Not by LOAD DATA LOCAL: it turns values that don't fit into others, with a warning, and
        # lets the server ask for any file of the client's.
        naming = connection.dialect.identifier_preparer
        names = ", ".join(map(naming.quote, rows.schema.names))
        head = f"INSERT INTO {naming.format_table(staging)} ({names}) VALUES "
        head = head.replace("%%", "%")  # doubled for statements with parameters
        most = connection.exec_driver_sql("SELECT @@max_allowed_packet").scalar_one()
        most -= len(head.encode()) + 100
        for batch in rows.to_batches(max_chunksize=_ROWS):
            lines = _literals(self, batch)
            _check_size(self, lines, most)
            for values in _cut(lines, min(_STATEMENT, most)):
                connection.exec_driver_sql(head + values, execution_options={"no_parameters": True})

    def empty(self, pipeline: Pipeline, staging: Table) -> None:
        # Of what is committed, by its key: a late task's rows are locked until it has ended.
        part = staging.c[PART]
        committed = alchemy().select(part).distinct()
        parts = pipeline.connection.execute(committed).scalars().all()
        if parts:
            pipeline.add(staging.delete().where(part.in_(parts)))

    def options(self, connection: Connection, like: Table | None = None) -> Mapping[str, Any]:
        if like is not None:  # so that keys are compared as in the user's table
            options = like.dialect_options["mysql"]
            names = ("default charset", "charset", "collate")
            given = {f"mysql_{name}": options[name] for name in names if name in options}
            return {"mysql_engine": "InnoDB", **given}
        # By bytes, and a space at the end counts: else two keys of the stream could be one row.
        mariadb = getattr(connection.dialect, "is_mariadb", False)
        collate = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
        return {
            "mysql_engine": "InnoDB",
            "mysql_charset": "utf8mb4",
            "mysql_collate": collate,
        }

    def misfits(self, table: Table) -> Iterator[str]:
        engine = str(table.dialect_options["mysql"].get("engine", "InnoDB"))
        if engine.lower() not in _ENGINES:
            yield (
                f"its engine {engine} has no transactions; run ALTER TABLE {table.name} "
                "ENGINE = InnoDB"
            )

    def incarnation(self, connection: Connection) -> str:
        # The second in which it was started, as both are of one query's clock; and of UUIDs what is
        # chosen by chance at a start.
        mariadb = getattr(connection.dialect, "is_mariadb", False)
        schema = "information_schema" if mariadb else "performance_schema"
        found = connection.exec_driver_sql(
            "SELECT CONCAT_WS(' ', UNIX_TIMESTAMP() - VARIABLE_VALUE, RIGHT(UUID(), 17)) "
            f"FROM {schema}.global_status WHERE VARIABLE_NAME = 'Uptime'"
        )
        return str(found.scalar_one())

    def examine(self) -> Iterator[Finding]:
        yield from super().examine()
        with self.transaction() as connection:
            asked = "SELECT @@read_only, @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog"
            read_only, flush, logs, sync = connection.exec_driver_sql(asked).one()
        if int(read_only):
            yield Finding("problem", f"{self} is read-only, as a replica is", "Give the primary.")
        settings = {
            "innodb_flush_log_at_trx_commit": flush,
            **({"sync_binlog": sync} if logs else {}),
        }
        for name, value in settings.items():
            loss = "a crash of its machine loses what it has acknowledged last"
            if value == 1:
                yield Finding("ok", f"{self} has {name} 1")
            else:
                yield Finding("warning", f"{self} has {name} {value}: {loss}", f"Set {name} = 1.")

    def explain(self, error: Exception) -> Exception:
        driver = _driver()
        code, said = error.args if len(error.args) == 2 else (0, error)
        if code == _OTHER_ROW:
            reason = (
                f"{said}. Most likely another row has its value in a unique index that isn't key='s"
            )
            return RefusedRowError(str(self), reason)
        if code in _ADVICE:
            return StateUnavailableError(str(self), str(said), _ADVICE[code])
        if code in _REFUSED or isinstance(error, driver.err.IntegrityError | driver.err.DataError):
            column = _COLUMN.search(str(said))
            return RefusedRowError(str(self), str(said), column and column[1])
        if code in (1051, 1054, 1146):
            return StateError(f"{self}: {said}. {CHANGED}")
        if isinstance(error, driver.err.InterfaceError) or 2000 <= code < 3000:
            return StateUnavailableError(str(self), str(said), _CUT)
        return error  # the caller's mistake


def _literals(database: RowsDatabase, batch: pa.RecordBatch) -> pa.Array:
    """Each row as ``(value,value),``, in the syntax of SQL."""
    import pyarrow as pa
    from pyarrow import compute

    text = pa.large_string()
    joined = partial(_joined, text)
    values = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        if pa.types.is_floating(kind):
            _check_finite(database, name, batch, column)
            column = column.cast(pa.float64())
        elif pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            hexed = [None if each is None else f"X'{each.hex()}'" for each in column.to_pylist()]
            column = pa.array(hexed, text)
        elif plain:
            column = column.cast(text)
        else:
            if pa.types.is_timestamp(kind):
                column = column.cast(pa.timestamp("us"))
            column = column.cast(text)
            for found, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\0", "\\0")):
                column = compute.replace_substring(column, found, escaped)
            column = joined("'", column, "'")
        values.append(column.fill_null("NULL"))
    return joined("(", joined(*values, by=","), "),")


def _joined(text: pa.DataType, *values: pa.Array | str, by: str = "") -> pa.Array:
    import pyarrow as pa
    from pyarrow import compute

    arrays = [pa.scalar(each, text) if isinstance(each, str) else each for each in values]
    return compute.binary_join_element_wise(*arrays, pa.scalar(by, text))


def _check_finite(
    database: RowsDatabase, name: str, batch: pa.RecordBatch, column: pa.Array
) -> None:
    from pyarrow import compute

    finite = compute.is_finite(column).fill_null(True)
    if not compute.all(finite).as_py():
        at = finite.index(False).as_py()
        reason = f"MySQL can't hold the number {column[at].as_py()}"
        raise RefusedRowError(str(database), reason, name)


def _check_size(database: RowsDatabase, lines: pa.Array, most: int) -> None:
    from pyarrow import compute

    largest = compute.max(compute.binary_length(lines)).as_py()
    if largest > most:
        reason = f"it has {largest:,} bytes, more than the server's max_allowed_packet"
        raise RefusedRowError(str(database), reason)


def _cut(lines: pa.Array, most: int) -> Iterator[str]:
    """Yield lines joined to texts of up to `most` bytes, or of one longer line, without the last
    comma."""
    from pyarrow import compute

    ends = [*accumulate(compute.binary_length(lines).to_pylist())]
    data, done, start = lines.buffers()[2], 0, 0
    while done < len(ends):
        done = max(bisect_right(ends, start + most), done + 1)
        yield data.slice(start, ends[done - 1] - start - 1).to_pybytes().decode()
        start = ends[done - 1]


def _driver() -> Any:
    """The module `pymysql`."""
    import pymysql
    import pymysql.constants.CLIENT

    return pymysql


def from_url(url: StateURL) -> MySQL:
    """Return the database of ``mysql://user:password@host:3306/shop``, or of ``mariadb://…``.

    Options are ``timeout=`` in seconds, ``tls=true``, and the files ``tls_ca=``, ``tls_cert=`` and
    ``tls_key=``.
    """
    if len(url.hosts) != 1 or not url.path.strip("/"):
        raise StateURLError(
            f"the scheme {url.scheme} names one server and a database, found",
            str(url),
            (),
            f"Write it as {url.scheme}://user:password@host:3306/shop.",
        )
    [(host, port)] = url.hosts
    own = url.read_own(timeout=float, tls=bool, tls_ca=str, tls_cert=str, tls_key=str)
    return MySQL(host, url.path.strip("/"), port or 3306, url.user, url.password, **own)
