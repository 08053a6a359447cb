"""Connections to a PostgreSQL server: lent for a call, kept by the process in between."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from time import monotonic
from typing import Any

from trident.backends.pool import Pool
from trident.backends.postgres.driver import Array, driver
from trident.backends.postgres.errors import explained
from trident.backends.sockets import CONNECT_SECONDS, is_quiet
from trident.backends.state_url import StateURL
from trident.states.finding import Finding

OPTIONS = ("service", "target_session_attrs", "sslmode", "sslrootcert", "sslcert", "sslkey")
"""What libpq takes beside the address."""
_PORT = 5432
_OLDEST = 120000
_ASKED = """
    SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
        pg_is_in_recovery(), current_setting('transaction_read_only'), current_setting('fsync'),
        current_setting('full_page_writes'), current_setting('synchronous_commit'),
        current_setting('synchronous_standby_names'), current_user, current_schema(),
        has_schema_privilege(current_schema(), 'CREATE')"""


@dataclass(frozen=True)
class Database:
    """Where a database is and how to log in, by libpq and its environment; pickles with its
    password."""

    settings: tuple[tuple[str, str], ...] = field(repr=False)
    timeout: float

    @staticmethod
    def of(given: Mapping[str, Any], timeout: float) -> Database:
        """Return the database of these settings of libpq's, without those that are None."""
        settings = ((name, str(value)) for name, value in given.items() if value is not None)
        return Database(tuple(settings), timeout)

    def __str__(self) -> str:
        return f"postgresql at {self.place}"

    @property
    def place(self) -> str:
        """The server and the database, as the settings name them."""
        given = dict(self.settings)
        hosts, ports = (given.get(name, "").split(",") for name in ("host", "port"))
        if len(ports) < len(hosts):  # libpq takes one port for all hosts
            ports *= len(hosts)
        pairs = zip(hosts, ports, strict=False)
        server = ",".join(f"{host}:{port or _PORT}" for host, port in pairs)
        if not given.get("host"):
            server = f"service {given['service']}" if "service" in given else "its default host"
        return f"{server}/{given.get('dbname', '')}"

    def connect(self) -> Any:
        kind = _connection_class(driver())  # a missing driver is reported before a missing server
        with explained(self):
            connection = kind.connect(
                autocommit=True,
                prepare_threshold=None,  # a pooler may answer each statement by another session
                connect_timeout=int(CONNECT_SECONDS),
                client_encoding="UTF8",
                application_name="trident",
                **dict(self.settings),
            )
        connection.timeout = self.timeout
        return connection

    @contextmanager
    def lend(self) -> Iterator[Any]:
        """Lend a connection outside a transaction, for the caller alone; dropped after an error."""
        with pool.lend(self) as connection, explained(self):
            yield connection


def address(url: StateURL) -> dict[str, Any]:
    """Return libpq's settings of ``postgresql://user:password@host:port,host:port/database``."""
    path = url.match_path("/?([^/]*)", "with the name of a database, as in /shop")
    given = {"dbname": path[1] or None, "user": url.user, "password": url.password}
    if url.hosts:
        given["host"] = ",".join(host for host, _ in url.hosts)
        given["port"] = ",".join(str(port or _PORT) for _, port in url.hosts)
    return given


pool = Pool(Database.connect, is_quiet)
"""The idle connections of this process."""


@cache
def _connection_class(psycopg: Any) -> Any:
    """Return a class of the driver's connections, with a limit to the time that a call may take."""

    class ArrayDumper(psycopg.adapt.Dumper):  # type: ignore[misc]
        format = psycopg.pq.Format.BINARY

        def dump(self, obj: Array) -> Array:
            return obj

    class Silence(TimeoutError, psycopg.OperationalError):  # type: ignore[misc]
        """No answer in time."""

    class Patient(psycopg.Connection):  # type: ignore[misc]
        timeout = CONNECT_SECONDS

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.adapters.register_dumper(Array, ArrayDumper)
            # The serializer reads the text of JSON.
            self.adapters.register_loader("json", psycopg.types.string.ByteaBinaryLoader)

        def wait(self, asked: Any, *arguments: Any, **options: Any) -> Any:
            limited = _stop_at(monotonic() + self.timeout, asked)
            try:
                return super().wait(limited, *arguments, **options)
            except TimeoutError:
                self.close()  # an answer that comes later must not be taken for another's
                raise Silence(f"no answer within {self.timeout:g} s") from None

    return Patient


def _stop_at(deadline: float, asked: Any) -> Generator[Any, Any, Any]:
    """Pass on what the driver waits for, until the deadline; while nothing comes it is sent 0."""
    try:
        wanted = next(asked)
        while True:
            ready = yield wanted
            if not ready and monotonic() > deadline:
                raise TimeoutError
            wanted = asked.send(ready)
    except StopIteration as done:
        return done.value


def examine_server(server: Database) -> Iterator[Finding]:
    """Yield what a server's settings, read by one statement, mean for a state."""
    with server.lend() as connection:
        row = connection.execute(_ASKED).fetchone()
    version, number, recovers, read_only, fsync, full_pages, commits, standbys = row[:8]
    user, schema, creates = row[8:]
    yield Finding("ok", f"{server} answers (version {version})")
    if number < _OLDEST:
        yield Finding("problem", f"{server} is older than 12", "Take 12 or newer.")
    if recovers or read_only == "on":
        advice = "Give the primary, or all hosts and target_session_attrs=read-write."
        yield Finding("problem", f"{server} takes no writes: it is a standby, or read-only", advice)
    if fsync == "off" or full_pages == "off":
        name = "fsync" if fsync == "off" else "full_page_writes"
        what = f"{server} has {name} off: a crash of its machine may damage all it holds"
        yield Finding("problem", what, f"Set {name} = on.")
    if commits == "off":
        what = f"{server} has synchronous_commit off: a crash loses what it has acknowledged last"
        yield Finding("warning", what, "Set synchronous_commit = on, at least for its user.")
    else:
        kept = f", and waits for {standbys}" if standbys else ""
        yield Finding("ok", f"{server} has synchronous_commit {commits}{kept}")
    if not creates:
        what = f"{server} does not let {user} make tables in the schema {schema}"
        advice = f"GRANT CREATE ON SCHEMA {schema} TO {user}, or make the tables for it."
        yield Finding("warning", what, advice)
