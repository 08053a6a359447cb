"""The tables that the library makes beside the user's: one row a state, and the rows that wait."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from trident.backends.rows.database import alchemy
from trident.backends.rows.target import Target

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table
    from sqlalchemy.types import TypeEngine

BAD_ROWS = "trident_bad_rows"
"""One row for each that a table has refused, where `on_bad_row` says so."""
CATALOG = "trident_rows"
"""One row a state: its name, what it is kept by, its control record, and who wrote its batch."""
NAME_LENGTH = 180
"""Characters of a state's name, at most: MySQL can't index more."""

_OPTIONS: Mapping[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}


@cache
def catalog() -> Table:
    """The table of all states of a database, in the schema that names without one mean."""
    sql = alchemy()
    long = sql.LargeBinary().with_variant(sql.LargeBinary(2**24), "mysql", "mariadb")
    return sql.Table(  # type: ignore[no-any-return]
        CATALOG,
        sql.MetaData(),
        sql.Column("name", _name(), primary_key=True),
        sql.Column("kept", long_text(), nullable=False),
        sql.Column("control", long),
        sql.Column("parts", long_text()),
        **_OPTIONS,
    )


def bad_rows(schema: str | None) -> Table:
    """The table of all rows that were put aside in a schema."""
    sql = alchemy()
    number = sql.BigInteger().with_variant(sql.Integer(), "sqlite")
    return sql.Table(  # type: ignore[no-any-return]
        BAD_ROWS,
        sql.MetaData(schema=schema),
        sql.Column("id", number, primary_key=True),
        sql.Column("state", _name(), nullable=False),
        sql.Column("txid", sql.BigInteger(), nullable=False),
        sql.Column("reason", long_text(), nullable=False),
        sql.Column("row_json", long_text(), nullable=False),
        sql.Column("source", long_text()),
        sql.Column("refused_at", sql.DateTime(timezone=True), nullable=False),
        **_OPTIONS,
    )


def _name() -> TypeEngine[Any]:
    """The type of a state's name, which MySQL has to compare by bytes, as other databases do."""
    sql = alchemy()
    binary = sql.String(NAME_LENGTH, "utf8mb4_bin")
    return sql.String(NAME_LENGTH).with_variant(binary, "mysql", "mariadb")  # type: ignore[no-any-return]


def long_text() -> TypeEngine[Any]:
    """The type of a text of any length."""
    text = alchemy().Text()
    return text.with_variant(alchemy().Text(2**24), "mysql", "mariadb")  # type: ignore[no-any-return]


def staging_name(name: str, columns: str) -> str:
    """Return the name of the table in which the rows of a state's batch wait.

    Other columns need another table: so no start changes a table in which rows may wait. The begin
    that names the new one drops the old one.

    Examples
    --------
    >>> staging_name("shop.orders", "id BIGINT, what TEXT")
    'trident_shop_orders_09aeccb9'
    """
    plain = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)
    digest = sha256(f"{name}\0{columns}".encode()).hexdigest()
    return f"trident_{plain[:40].lower()}_{digest[:8]}"


def reflected(connection: Connection, target: Target) -> Table | None:
    """Return the user's table as the database describes it; None if it is absent."""
    sql = alchemy()
    found: Any = sql.Table(target.table, sql.MetaData(), schema=target.schema)
    try:
        sql.inspect(connection).reflect_table(found, None, resolve_fks=False)
    except sql.exc.NoSuchTableError:
        return None
    return found  # type: ignore[no-any-return]
