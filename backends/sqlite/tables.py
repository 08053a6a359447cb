"""What a state looks like inside a SQLite file: its table, and values as typed columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from operator import itemgetter
from typing import Any, cast

import orjson

from trident.states.errors import SerializationError
from trident.states.kinds import KINDS
from trident.states.serializers import Serializer, dump_all, load_all
from trident.states.table.adapters import naming_key
from trident.states.values import StateType, are_longs

CATALOG = "trident_states"
"""One row a state of the file: its name, its kind, its control record."""

_STRICT = sqlite3.sqlite_version_info >= (3, 37)
# Before STRICT, a column without a type is the one that converts nothing; "ANY" would be numeric.
_ANY = "ANY" if _STRICT else ""
_OPTIONS = "WITHOUT ROWID" + (", STRICT" if _STRICT else "")

CREATE_CATALOG = f"""
    CREATE TABLE IF NOT EXISTS {CATALOG} (
        name TEXT COLLATE NOCASE NOT NULL PRIMARY KEY,
        kind TEXT NOT NULL,
        control BLOB
    ) {_OPTIONS}"""

_AT_ONCE = 5_000
_LONGS = range(-(2**63), 2**63)


@dataclass(frozen=True)
class SQLiteTable:
    """One state's table; `serializer` makes BLOBs of values that SQLite has no type for."""

    name: str
    kind: StateType
    serializer: Serializer

    @property
    def quoted(self) -> str:
        """The name in SQL; ``main.`` tells it from a temporary table of that name."""
        return 'main."' + self.name.replace('"', '""') + '"'

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns beside the key."""
        return KINDS[self.kind].columns

    @property
    def create(self) -> str:
        """The statement that makes the table."""
        columns = ", ".join(
            f"{name} INTEGER NOT NULL" if name in ("txid", "attempt") else f"{name} {_ANY}"
            for name in self.columns
        )
        return f"CREATE TABLE {self.quoted} (key {_ANY} NOT NULL PRIMARY KEY, {columns}) {_OPTIONS}"

    @property
    def upsert(self) -> str:
        """The statement that stores one row."""
        marks = ", ".join("?" * (1 + len(self.columns)))
        changes = ", ".join(f"{name} = excluded.{name}" for name in self.columns)
        # The alias makes `excluded` the new row even if the table itself has that name.
        return (
            f"INSERT INTO {self.quoted} AS stored VALUES ({marks}) "
            f"ON CONFLICT (key) DO UPDATE SET {changes}"
        )

    @property
    def delete(self) -> str:
        """The statement that removes one row."""
        return f"DELETE FROM {self.quoted} WHERE key = ?"

    def rows(self, keys: Sequence[bytes], values: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        """Return the rows that keep `values`, without a None, under `keys`."""
        kind = KINDS[self.kind]
        columns = kind.by_column(values)
        try:
            kept = self._native_columns(values)
        except SerializationError as error:
            raise naming_key(error, self._native_columns, keys, values) from None
        return zip(*sort_by_key(keys, *columns[: kind.tokens], *kept), strict=True)

    def _native_columns(self, values: Sequence[Any]) -> list[Sequence[Any]]:
        kind = KINDS[self.kind]
        columns = kind.by_column(values)[kind.tokens :]
        return [to_native(column, self.serializer) for column in columns]

    def get(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> list[Any]:
        """Return the values of `keys`, None for each that is absent."""
        return self.values(self._read_rows(connection, keys))

    def all(self, connection: sqlite3.Connection) -> list[tuple[bytes, Any]]:
        """Return every key and its value."""
        return self._entries(connection.execute(self._select).fetchall())

    def page(
        self, connection: sqlite3.Connection, after: bytes | None, end: bytes | None
    ) -> list[tuple[bytes, Any]]:
        """Return a page of keys and values, in their order, behind `after` and up to `end`."""
        bounds = {"key > ?": after, "key <= ?": end}
        given = {text: key for text, key in bounds.items() if key is not None}
        where = f"WHERE {' AND '.join(given)}" if given else ""
        statement = f"{self._select} {where} ORDER BY key LIMIT {_AT_ONCE}"
        values = stored_keys(list(given.values()))
        return self._entries(connection.execute(statement, values).fetchall())

    def bounds(self, connection: sqlite3.Connection, count: int) -> list[bytes]:
        """Return keys that divide the table into `count` ranges of about the same size."""
        [rows] = connection.execute(f"SELECT count(*) FROM {self.quoted}").fetchone()
        found: list[bytes] = []
        while rows >= count > len(found) + 1:
            behind = "WHERE key > ?" if found else ""
            statement = f"SELECT key FROM {self.quoted} {behind} ORDER BY key LIMIT 1 OFFSET ?"
            place = [*stored_keys(found[-1:]), rows // count - 1]
            row = connection.execute(statement, place).fetchone()
            if row is None:  # rows were removed meanwhile
                break
            found.append(key_of(row[0]))
        return found

    @property
    def _select(self) -> str:
        return f"SELECT key, {', '.join(self.columns)} FROM {self.quoted}"

    def _entries(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[bytes, Any]]:
        return [
            (key_of(row[0]), value)
            for row, value in zip(rows, self.values([row[1:] for row in rows]), strict=True)
        ]

    def any(self, connection: sqlite3.Connection) -> str | None:
        """Return the name of some row for an error; None if the table is empty."""
        row = connection.execute(f"SELECT key FROM {self.quoted} LIMIT 1").fetchone()
        return None if row is None else f"the row {row[0]!r}"

    def values(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the values that `rows`, without their keys, keep; a row of nulls is absent."""
        kind = KINDS[self.kind]
        kept = map(itemgetter, range(kind.tokens, len(kind.columns)))
        if any(bytes in set(map(type, map(column, rows))) for column in kept):
            columns = [from_native(column, self.serializer) for column in zip(*rows, strict=True)]
            rows = list(zip(*columns, strict=True))
        return kind.of_rows(rows)

    def _read_rows(
        self, connection: sqlite3.Connection, keys: Sequence[bytes]
    ) -> list[tuple[Any, ...]]:
        names = ", ".join(f"state.{name}" for name in self.columns)
        wanted = stored_keys(keys)
        if _fits_json(wanted):
            # Twice as fast as IN: no list is sorted, and rows come in the order of the keys,
            # because the outer loop of a LEFT JOIN is always its first table.
            return connection.execute(
                f"SELECT {names} FROM json_each(?) AS wanted LEFT JOIN {self.quoted} AS state "
                "ON state.key = wanted.value",
                (orjson.dumps(wanted).decode(),),
            ).fetchall()
        found: dict[str | bytes, tuple[Any, ...]] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            chunk = wanted[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(chunk))
            found.update(
                (row[0], row[1:])
                for row in connection.execute(
                    f"SELECT key, {names} FROM {self.quoted} AS state WHERE key IN ({marks})",
                    chunk,
                )
            )
        absent = (None,) * len(self.columns)
        return [found.get(key, absent) for key in wanted]


def sort_by_key(keys: Sequence[bytes], *columns: Sequence[Any]) -> Iterator[Iterator[Any]]:
    """Return `keys`, as SQLite stores them, and their columns, in the order of the keys.

    So a write changes one page of the table after the other. In a table larger than the cache, a
    page that is needed again was written to the log meanwhile, and has to be read anew.
    """
    stored = stored_keys(keys)
    # Texts compare faster than bytes, in the same order, but can't be compared with bytes.
    compared = stored if set(map(type, stored)) == {str} else keys
    order = sorted(range(len(keys)), key=compared.__getitem__)
    return (map(column.__getitem__, order) for column in (stored, *columns))


def stored_keys(keys: Sequence[bytes]) -> Sequence[str | bytes]:
    """Return `keys` as SQLite stores them: text, which it compares twice as fast as bytes."""
    try:
        return list(map(bytes.decode, keys))
    except UnicodeDecodeError:  # not an encoded key, but a map takes any bytes
        return [_stored_key(key) for key in keys]


def _stored_key(key: bytes) -> str | bytes:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key


def key_of(stored: str | bytes) -> bytes:
    """Return the key that is stored as `stored`."""
    return stored.encode() if isinstance(stored, str) else stored


def _fits_json(keys: Sequence[str | bytes]) -> bool:
    """Return whether SQLite's JSON can hold `keys`: a NUL ends its texts, and it has no bytes."""
    return set(map(type, keys)) == {str} and not any("\0" in key for key in cast(Any, keys))


def to_native(column: Sequence[Any], serializer: Serializer) -> Sequence[Any]:
    """Return `column` as SQLite stores it; `serializer` makes bytes of what it has no type for."""
    if are_longs(column):
        return column
    others = [value for value in column if not _is_native(value)]
    if not others:
        return column
    made = iter(dump_all(serializer, others))
    return [value if _is_native(value) else next(made) for value in column]


def _is_native(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return value in _LONGS
    if kind is str:
        return value.isascii() or _encodes(value)
    # SQLite turns NaN into NULL, which would remove the key.
    return value is None or (kind is float and isfinite(value))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def from_native(column: Sequence[Any], serializer: Serializer) -> tuple[Any, ...]:
    """Return the values that :func:`to_native` made `column` of."""
    made = iter(load_all(serializer, [value for value in column if type(value) is bytes]))
    return tuple(next(made) if type(value) is bytes else value for value in column)
