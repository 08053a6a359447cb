"""The columns of rows: types of fields as types of SQL, and the user's table checked for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trident.backends.rows.catalog import long_text, reflected, staging_name
from trident.backends.rows.database import RowsDatabase, alchemy
from trident.backends.rows.errors import TableMismatchError
from trident.backends.rows.target import BAD, DELETED, NUMBER, ORDER, PART, REASON, SOURCE, Target

if TYPE_CHECKING:
    from sqlalchemy import Column, Connection, Index, Table
    from sqlalchemy.types import TypeEngine

Types = Mapping[str, str | None]
"""The types of fields, as DDL; None where the stream does not declare one."""

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DIGITS = {"long": 19, "int": 10, "short": 5, "byte": 3, "decimal": 10}
"""How many digits the values of a field may have."""
_INTEGERS = ("long", "int", "short", "byte")
_CAST: Types = {
    "timestamp": ", a moment: cast it to timestamp_ntz, or make the column one with a time zone",
    "timestamp_ntz": ", a time without zone: cast it to timestamp, or make the column one without",
}
"""What to do about a column of moments for times without zone, and the other way round."""
_FOLDING = ("mysql", "sqlite")
"""Dialects that take names of columns for the same if only their capitals differ."""
_ADDABLE = (*_INTEGERS, "double", "float", "decimal")


def sql_type(kind: str, *, in_key: bool = False) -> TypeEngine[Any] | None:
    """The type of SQL of a column for a field, None if no type fits; MySQL's keys are bounded."""
    sql = alchemy()
    from sqlalchemy.dialects import mysql

    if found := _DECIMAL.fullmatch(kind):
        return sql.Numeric(int(found[1]), int(found[2]))  # type: ignore[no-any-return]
    head = kind.partition("(")[0]
    text = sql.Text().with_variant(
        mysql.VARCHAR(255) if in_key else mysql.LONGTEXT(), "mysql", "mariadb"
    )
    binary = sql.LargeBinary().with_variant(
        mysql.VARBINARY(255) if in_key else mysql.LONGBLOB(), "mysql", "mariadb"
    )
    moment = mysql.DATETIME(fsp=6)
    made: Mapping[str, Any] = {
        "string": text,
        "char": text,
        "varchar": text,
        "long": sql.BigInteger(),
        "int": sql.Integer(),
        "short": sql.SmallInteger(),
        "byte": sql.SmallInteger(),
        "double": sql.Double(),
        "float": sql.REAL(),
        "decimal": sql.Numeric(10, 0),
        "boolean": sql.Boolean(),
        "binary": binary,
        "date": sql.Date(),
        "timestamp": sql.DateTime(timezone=True).with_variant(moment, "mysql", "mariadb"),
        "timestamp_ntz": sql.DateTime().with_variant(moment, "mysql", "mariadb"),
    }
    return made.get(head)


def checked_staging(
    connection: Connection,
    database: RowsDatabase,
    target: Target,
    types: Types,
    state: str,
    *,
    begun: bool,
) -> Table:
    """The state's staging table, made if need be; TableMismatchError if the user's doesn't fit."""
    place = f"{target.name} in {database}"
    problems = list(_wrong_fields(database, target, types))
    table = None if problems else reflected(connection, target)
    if table is None and not problems:
        problems = list(_not_made(connection, database, target, types, begun))
        if not problems:
            _make(connection, database, target, types)
            table = reflected(connection, target)  # as a later start finds it
    if table is not None:
        database.refine(connection, table)
        problems = list(_misfits(database, target, types, table))
    if problems:
        raise TableMismatchError(place, problems)
    assert table is not None
    columns = list(_staging_columns(database, target, types, table))
    options = database.options(connection, table)
    described = ", ".join(f"{each.name} {each.type!r} {each.nullable}" for each in columns)
    # Another default schema has another catalog, whose states may have the same names.
    catalog = f" {connection.dialect.default_schema_name}" if target.schema else ""
    made = alchemy().Table(
        staging_name(state, f"{described} {options}{catalog}"),
        alchemy().MetaData(schema=target.schema),
        *columns,
        **options,
    )
    made.create(connection, checkfirst=True)
    return made  # type: ignore[no-any-return]


def _wrong_fields(database: RowsDatabase, target: Target, types: Types) -> Iterator[str]:
    """What is wrong with the fields, whatever the table is."""
    fields = ", ".join(types) or "none"
    asked = {"order_by=": target.order_by, "delete_where=": target.delete_where}
    asked |= {"columns=": next((name for name in target.columns if name not in types), None)}
    for option, name in asked.items():
        if name is not None and name not in types:
            yield f"{option} names the field {name}, which the rows don't have; they have: {fields}"
    if target.order_by and target.order_by in types and not types[target.order_by]:
        yield (
            f"order_by= names the field {target.order_by}, which has no type, so that 9 might come "
            f'after 10: declare it ("{target.order_by} long")'
        )
    ordering = target.order_by and types.get(target.order_by)
    if ordering and sql_type(ordering) is None:
        yield f"order_by= names {target.order_by}, a {ordering}, by which no rows can be ordered"
    columns = list(target.columns.values())
    for name in target.key:
        if name not in columns:
            yield f"key= names the column {name}, which no field fills; filled are: " + ", ".join(
                columns
            )
    for name in sorted({each for each in columns if columns.count(each) > 1}):
        yield f"several fields fill the column {name}; columns= may say which"
    for name in sorted({PART, NUMBER, DELETED, ORDER, SOURCE, REASON, BAD} & {*columns}):
        yield f"the column {name} has a name of the library's own; columns= may give another"
    deleting = target.delete_where and types.get(target.delete_where)
    if deleting and deleting not in ("boolean", "string"):
        yield (
            f"delete_where= names {target.delete_where}, a {deleting}; it has to be a boolean, or "
            "a string that is 'd' for a row to delete"
        )
    added = {*columns} - {*target.key} if target.mode == "add" else ()
    for name, column in target.columns.items():
        kind = types.get(name)
        if not kind:
            continue
        if sql_type(kind) is None:
            yield (
                f"the field {name} is {kind}, which no column can hold: make it a text "
                "(to_json), or name its parts"
            )
        elif column in added and not kind.startswith(_ADDABLE):
            yield f"mode='add' adds numbers, and the field {name} is {kind}"
        elif column in added and kind.startswith("decimal") and not database.adds_decimals:
            yield (
                f"mode='add' would round the field {name}, a {kind}, as {database.name} adds "
                "decimals as doubles: make it a long, as of cents, or cast it to double"
            )


def _not_made(
    connection: Connection, database: RowsDatabase, target: Target, types: Types, begun: bool
) -> Iterator[str]:
    """Yield why an absent table can't be made."""
    if begun:
        yield "the table was dropped: restore a backup, or begin anew with another checkpoint"
        return
    for name in alchemy().inspect(connection).get_table_names(target.schema):
        if name.lower() == target.table.lower():
            yield f"the table is not there, but one called {name} is: capitals count, so name that"
    alike: dict[str, str] = {}
    for column in target.columns.values() if database.name in _FOLDING else ():
        if alike.setdefault(column.lower(), column) != column:
            yield (
                f"the columns {alike[column.lower()]} and {column} are one in {database.name}, as "
                "capitals don't count there; columns= may give another name"
            )
    for name in target.columns:
        if not types.get(name):
            yield (
                f"the table is not there, and can't be made, as the type of the field {name} is "
                f'not known: make it yourself, declare the field ("{name} string"), or cast it'
            )


def _make(connection: Connection, database: RowsDatabase, target: Target, types: Types) -> None:
    sql = alchemy()
    columns = []
    for name, column in target.columns.items():
        in_key = column in target.key
        kind = sql_type(types[name] or "", in_key=in_key)
        columns.append(
            sql.Column(column, kind, primary_key=in_key, autoincrement=False, nullable=not in_key)
        )
    options = database.options(connection)
    made = sql.Table(target.table, sql.MetaData(schema=target.schema), *columns, **options)
    made.create(connection, checkfirst=True)


def _misfits(database: RowsDatabase, target: Target, types: Types, table: Table) -> Iterator[str]:
    """Yield what of the user's table does not fit."""
    yield from database.misfits(table)
    for name, column in target.columns.items():
        if column not in table.c:
            names = ", ".join(table.c.keys())
            yield f"it has no column {column} for the field {name}; it has: {names}"
            continue
        found, kind = table.c[column], types.get(name)
        always = found.identity is not None and found.identity.always
        if found.computed is not None or always:
            yield f"the column {column} is computed by the database, and can't be filled"
        elif isinstance(found.type, alchemy().types.NullType):
            yield (
                f"the column {column} has no type, or one that SQLAlchemy doesn't know: give it "
                f'another, or leave the field out (columns={{"{name}": None}})'
            )
        elif kind and not _takes(database, found.type, kind):
            cast = _CAST.get(kind, "") if isinstance(found.type, alchemy().DateTime) else ""
            shown = _shown(database, found.type)
            yield f"the column {column} is {shown}, the field {name} {kind}{cast}"
    filled = {*target.columns.values()}
    for found in table.c:
        has_value = found.server_default is not None or found.identity is not None
        has_value = has_value or found.computed is not None or found.autoincrement is True
        if not found.nullable and not has_value and found.name not in filled:
            is_serial = found.primary_key and _is_serial(table, found)
            if not is_serial:
                yield f"the column {found.name} must not be null, has no default, and no field"
    if target.key and not _is_unique(table, target):
        yield (
            f"no primary key or unique index is on ({', '.join(target.key)}), by which key= finds "
            "rows: make one"
        )


def _takes(database: RowsDatabase, found: TypeEngine[Any], kind: str) -> bool:
    """Whether a column's type holds the values of a field; a value too large is a bad row.

    Only doubles, and moments, may be rounded: by a column of fewer digits.
    """
    sql = alchemy()
    head = kind.partition("(")[0]
    decimal = _DECIMAL.fullmatch(kind)
    digits, scale = map(int, decimal.groups()) if decimal else (_DIGITS.get(head, 0), 0)
    numbers = (sql.Integer, sql.Numeric, sql.Float)
    if isinstance(found, sql.Float) and digits > _float_digits(database, found):
        return False
    if head in _INTEGERS:
        return isinstance(found, numbers)
    if head in ("double", "float", "decimal"):
        kept = getattr(found, "scale", None)
        rounds = kept is not None and kept < scale
        return isinstance(found, (sql.Numeric, sql.Float)) and not rounds
    if head == "boolean":
        return isinstance(found, sql.Boolean) or (not database.zoned and _is_flag(found))
    if head == "binary":
        return isinstance(found, sql.types._Binary)
    if head == "date":
        return isinstance(found, sql.Date)
    if head.startswith("timestamp"):
        zoned = bool(getattr(found, "timezone", False)) == (head == "timestamp")
        return isinstance(found, sql.DateTime) and (zoned or not database.zoned)
    others = (*numbers, sql.Boolean, sql.types._Binary, sql.Date, sql.DateTime)
    return not isinstance(found, others)


def _float_digits(database: RowsDatabase, found: TypeEngine[Any]) -> int:
    """How many decimal digits a column of floats keeps, whatever they are."""
    is_double = isinstance(found, alchemy().Double) or database.name == "sqlite"
    return 15 if is_double else 6


def _is_flag(found: TypeEngine[Any]) -> bool:
    return type(found).__name__ in ("TINYINT", "BIT")


def _is_serial(table: Table, column: Column[Any]) -> bool:
    """Whether SQLite numbers the column: the only one of the key, an integer."""
    return len(table.primary_key.columns) == 1 and isinstance(column.type, alchemy().Integer)


def _is_unique(table: Table, target: Target) -> bool:
    """Whether the database finds at most one row of a key."""
    key = {*target.key}
    if {column.name for column in table.primary_key.columns} == key:
        return True
    found = any({each.name for each in index.columns} == key for index in _whole_indexes(table))
    constraints = [c for c in table.constraints if isinstance(c, alchemy().UniqueConstraint)]
    return found or any({column.name for column in each.columns} == key for each in constraints)


def _whole_indexes(table: Table) -> Iterator[Index]:
    """Unique indexes of all rows, by columns as they are."""
    for index in table.indexes:
        plain = len(index.expressions) == len(index.columns)
        parted = any(name.endswith(("_where", "_length")) for name in index.dialect_kwargs)
        if index.unique and plain and not parted:
            yield index


def _shown(database: RowsDatabase, kind: TypeEngine[Any]) -> str:
    return str(kind.compile(database.engine.dialect)).lower()


def _staging_columns(
    database: RowsDatabase, target: Target, types: Types, table: Table
) -> Iterator[Column[Any]]:
    """Yield the columns of the user's table that are filled, as the user has them, and our own.

    The staging table refuses a null in a column that must have a value. Only a row to delete, or
    one that is put aside, may have it: of these only the key counts, or nothing.
    """
    sql, apart = alchemy(), target.dead_letters
    numbered = apart or database.numbered
    for name in [PART, NUMBER] if numbered else [PART]:
        yield sql.Column(
            name, sql.BigInteger(), primary_key=numbered, autoincrement=False, nullable=False
        )
    for column in target.columns.values():
        found = table.c[column]
        must = column in target.key or not (found.nullable or target.delete_where)
        nullable = apart or not must
        yield sql.Column(column, found.type, nullable=nullable, autoincrement=False)
    if target.delete_where:
        yield sql.Column(DELETED, sql.Boolean(), nullable=apart)
    if target.order_by and target.ordering == ORDER:
        yield sql.Column(ORDER, sql_type(types[target.order_by] or "string"))
    yield from [sql.Column(name, long_text()) for name in (SOURCE, *[REASON, BAD] * apart)]
