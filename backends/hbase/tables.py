"""The table and column family that states are kept in: made where missing, refused where unfit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trident.backends.hbase.connections import thrift
from trident.states.errors import StateError

_FOREVER = 2**31 - 1


def prepare_table(client: Any, gateway: str, table: str, family: str) -> None:
    """Make `table` with `family` where it is missing; check `family` where it is there.

    Runs once a process, before its first use of the table. Several processes may run it at once.
    Raises StateError for a family that forgets.
    """
    found = families(client, table)
    if found is None:
        _create(client, table, family)
        found = families(client, table) or {}
    check_family(found, gateway, table, family)


def check_family(found: Mapping[bytes, Any], gateway: str, table: str, family: str) -> None:
    """Refuse a table without `family`, or whose `family` forgets; see :func:`prepare_table`."""
    described = found.get(f"{family}:".encode())
    if described is None:
        has = ", ".join(sorted(name.decode().rstrip(":") for name in found)) or "none"
        raise StateError(
            f"{gateway}: table {table} has no column family {family}; it has: {has}. Add it in "
            f"HBase's shell: alter '{table}', {{NAME => '{family}', VERSIONS => 1}}."
        )
    if 0 < described.timeToLive < _FOREVER:
        raise StateError(
            f"{gateway}: column family {family} of table {table} forgets what is "
            f"{described.timeToLive} s old, the control record first, without which no batch can "
            "be told from another. Take another family, or let it keep everything: "
            f"alter '{table}', {{NAME => '{family}', TTL => 'FOREVER'}}."
        )


def families(client: Any, table: str) -> dict[bytes, Any] | None:
    """Return the column families of a table, as HBase describes them; None for no table."""
    try:
        found: dict[bytes, Any] = client.getColumnDescriptors(table.encode())
    except thrift().IOError as error:
        if b"TableNotFoundException" in error.message:
            return None
        raise
    return found


def _create(client: Any, table: str, family: str) -> None:
    # By default the gateway would make a table without either, and reading it would be slow.
    quick = {"bloomFilterType": b"ROW", "blockCacheEnabled": True}
    described = thrift().ColumnDescriptor(name=f"{family}:".encode(), maxVersions=1, **quick)
    try:
        client.createTable(table.encode(), [described])
    except thrift().AlreadyExists:
        pass  # somebody else has made it
    except thrift().IOError as error:
        if b"TableExistsException" not in error.message:  # somebody else is making it
            raise
