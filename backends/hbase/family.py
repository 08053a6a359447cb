"""The column family that keeps states: how it is reached, made, and checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trident.backends.hbase.connections import Gateway, thrift
from trident.backends.hbase.errors import explained
from trident.states.errors import StateError, StateUnavailableError

_FOREVER = 2**31 - 1


@dataclass(frozen=True)
class Family:
    """A column family of a table; pickles."""

    gateway: Gateway
    table: str
    name: str

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Lend a client whose errors are explained; its connection is dropped if a call fails."""
        gateway = self.gateway
        with (
            explained(str(gateway), gateway.timeout, self.table, self.name),
            gateway.lend() as connection,
        ):
            yield connection.client

    @contextmanager
    def prepared_client(self) -> Iterator[Any]:
        """Lend a client; the first of a process makes the table if it is missing, and checks it."""
        try:
            with self.client() as client:
                if self not in _prepared:
                    if not self.check(client):
                        self._create(client)
                        self.check(client)
                    _prepared.add(self)
                yield client
        except StateUnavailableError:
            _prepared.discard(self)  # the table may have been dropped
            raise

    def check(self, client: Any) -> bool:
        """Return whether the table exists; raise StateError if this family can't keep states."""
        try:
            found = client.getColumnDescriptors(self.table.encode())
        except thrift().IOError as error:
            if b"TableNotFoundException" in error.message:
                return False
            raise
        described = found.get(f"{self.name}:".encode())
        if described is None:
            has = ", ".join(sorted(name.decode().rstrip(":") for name in found)) or "none"
            raise StateError(
                f"{self.gateway}: table {self.table} has no column family {self.name}; it has: "
                f"{has}. Add it in HBase's shell: alter '{self.table}', {{NAME => '{self.name}', "
                "VERSIONS => 1}."
            )
        if 0 < described.timeToLive < _FOREVER:
            raise StateError(
                f"{self.gateway}: column family {self.name} of table {self.table} forgets what is "
                f"{described.timeToLive} s old, the control record first, without which batches "
                "can't be told apart. Give another family, or let it keep everything: "
                f"alter '{self.table}', {{NAME => '{self.name}', TTL => 'FOREVER'}}."
            )
        return True

    def _create(self, client: Any) -> None:
        # By default the gateway would make a table without either, and reading it would be slow.
        quick = {"bloomFilterType": b"ROW", "blockCacheEnabled": True}
        described = thrift().ColumnDescriptor(name=f"{self.name}:".encode(), maxVersions=1, **quick)
        try:
            client.createTable(self.table.encode(), [described])
        except thrift().AlreadyExists:
            pass  # another process has made it
        except thrift().IOError as error:
            if b"TableExistsException" not in error.message:  # another process is making it
                raise


_prepared: set[Family] = set()
"""The families that this process has checked."""
