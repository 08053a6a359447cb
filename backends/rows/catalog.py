"""The tables that the library makes beside the user's: one row a state, and the rows that wait."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from trident.backends.rows.database import alchemy
from trident.backends.rows.target import Target

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

CATALOG = "trident_rows"
"""One row a state: its name, what it is kept by, its control record, and who wrote its batch."""
NAME_LENGTH = 180
"""Characters of a state's name, at most: MySQL can't index more."""


def catalog() -> Table:
    """The table of all states of a database, in the schema that names without one mean."""
    sql = alchemy()
    long = sql.LargeBinary().with_variant(sql.LargeBinary(2**24), "mysql", "mariadb")
    text = sql.Text().with_variant(sql.Text(2**24), "mysql", "mariadb")
    # By bytes, as other databases compare.
    binary = sql.String(NAME_LENGTH, "utf8mb4_bin")
    name = sql.String(NAME_LENGTH).with_variant(binary, "mysql", "mariadb")
    return sql.Table(  # type: ignore[no-any-return]
        CATALOG,
        sql.MetaData(),
        sql.Column("name", name, primary_key=True),
        sql.Column("kept", text, nullable=False),
        sql.Column("control", long),
        sql.Column("parts", text),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
    )


def staging_name(name: str, columns: str) -> str:
    """What the table is called in which the rows of a state's batch wait.

    Where its columns are others it is another table: so no run drops, or changes, what an earlier
    one may still need.

    Examples
    --------
    >>> staging_name("shop.orders", "id BIGINT, what TEXT")
    'trident_shop_orders_09aeccb9'
    """
    plain = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)
    digest = sha256(f"{name}\0{columns}".encode()).hexdigest()
    return f"trident_{plain[:40].lower()}_{digest[:8]}"


def reflected(connection: Connection, target: Target, name: str | None = None) -> Table | None:
    """The user's table, or the table `name` of its schema, as it is; None where there is none."""
    sql = alchemy()
    found: Any = sql.Table(name or target.table, sql.MetaData(), schema=target.schema)
    try:
        sql.inspect(connection).reflect_table(found, None, resolve_fks=False)
    except sql.exc.NoSuchTableError:
        return None
    return found  # type: ignore[no-any-return]
