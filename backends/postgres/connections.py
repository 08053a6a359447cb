"""Connections to a PostgreSQL server: lent for a call, kept by the process in between."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from time import monotonic
from typing import Any

from trident.backends.pool import Pool, is_quiet
from trident.backends.postgres.arrays import Array
from trident.backends.postgres.driver import driver
from trident.backends.postgres.errors import explained

_CONNECT_SECONDS = 2


@dataclass(frozen=True)
class Database:
    """Where a database is and how to log in, as libpq has it; picklable, with its password.

    What `settings` leave out libpq takes from its environment.
    """

    settings: tuple[tuple[str, str], ...] = field(repr=False)
    timeout: float

    def __str__(self) -> str:
        return f"postgresql at {self.place}"

    @property
    def place(self) -> str:
        """Where the database is, as far as it was told."""
        given = dict(self.settings)
        hosts, ports = (given.get(name, "").split(",") for name in ("host", "port"))
        if len(ports) < len(hosts):  # libpq takes one port for all hosts
            ports *= len(hosts)
        told = ",".join(f"{host}:{port or 5432}" for host, port in zip(hosts, ports, strict=False))
        if not given.get("host"):
            told = f"service {given['service']}" if "service" in given else "its default host"
        return f"{told}/{given.get('dbname', '')}"

    def connect(self) -> Any:
        """Return a new connection; the caller closes it."""
        kind = _patient(driver())  # a missing driver is told before a missing server
        with explained(self):
            connection = kind.connect(
                autocommit=True,
                prepare_threshold=None,  # a pooler may answer each statement by another session
                connect_timeout=_CONNECT_SECONDS,
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


def _is_quiet(connection: Any) -> bool:
    """Return whether the server has said nothing: nobody had asked, so it would be the end."""
    return is_quiet(connection.fileno())


pool = Pool(Database.connect, _is_quiet)
"""The connections of this process that nobody uses now."""


@cache
def _patient(psycopg: Any) -> Any:
    """Return a class of the driver's connections, with a limit to the time that a call may take."""

    class ArrayDumper(psycopg.adapt.Dumper):  # type: ignore[misc]
        format = psycopg.pq.Format.BINARY

        def dump(self, obj: Array) -> Array:
            return obj

    class Patient(psycopg.Connection):  # type: ignore[misc]
        timeout = float(_CONNECT_SECONDS)

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.adapters.register_dumper(Array, ArrayDumper)
            # The text of JSON is left to the serializer.
            self.adapters.register_loader("json", psycopg.types.string.ByteaBinaryLoader)

        def wait(self, asked: Any, *arguments: Any, **options: Any) -> Any:
            limited = _until(monotonic() + self.timeout, self.timeout, asked)
            return super().wait(limited, *arguments, **options)

    return Patient


def _until(deadline: float, timeout: float, asked: Any) -> Generator[Any, Any, Any]:
    """Hand on what the driver waits for, until the deadline; it is sent 0 while nothing comes."""
    try:
        wanted = next(asked)
        while True:
            ready = yield wanted
            if not ready and monotonic() > deadline:
                raise TimeoutError(f"no answer within {timeout:g} s")
            wanted = asked.send(ready)
    except StopIteration as done:
        return done.value
