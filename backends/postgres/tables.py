"""What a state looks like in PostgreSQL: its rows, its table, and the view of what is committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from typing import Any

from trident.backends.postgres.driver import BYTES, DOUBLE, JSON, LONG, Array, array, definition
from trident.states.control import UNFINISHED
from trident.states.errors import SerializationError
from trident.states.kinds import KINDS
from trident.states.serializers import Serializer, dump_all, load_all
from trident.states.values import StateType

CATALOG = "trident_states"
"""One row a state: its name, how it is kept, its control record."""

CREATE_CATALOG = f"""
    CREATE TABLE {CATALOG} (
        name text COLLATE "C" PRIMARY KEY, kept text NOT NULL, control bytea
    ) WITH (fillfactor = 50)"""

TOKENS = {"txid": "bigint", "attempt": "integer"}
DEFAULT_COLUMNS = ("key", "value")
_ELEMENTS = {"json": JSON, "bytea": BYTES, "bigint": LONG, "double precision": DOUBLE}
_LONGS = range(-(2**63), 2**63)

_TAGGED = {
    "date": ("date", "$date"),
    "timestamp": ("timestamptz", "$timestamp"),
    "timestamp_ntz": ("timestamp", "$timestamp_ntz"),
    "decimal": ("numeric", "$decimal"),
    "double": ("double precision", "$double"),
}
_UNTAGGED = {
    "boolean": ("boolean", "^(true|false)$"),
    "long": ("bigint", "^-?[0-9]+$"),
    "double": ("double precision", "^[-0-9.eE+]+$"),
}
_ALIASES = {**dict.fromkeys(("int", "short", "byte"), "long"), "float": "double"}
KEY_TYPES = ("string", *dict.fromkeys([*_TAGGED, *_UNTAGGED, *_ALIASES]))
"""The types that a column of a key's field may have; other fields are text."""

_LONGEST = 2000
"""Bytes of a key that an index always takes; a longer one is found by its digest."""
_DIGEST = b"\0\0"
"""No encoded key begins so."""

# One string is shown as it is, other fields from their JSON, and bytes that are not text escaped.
_FIELD = r"""
    CASE
        WHEN position('\x00'::bytea IN {key}) = 0 THEN convert_from({key}, 'UTF8')
        WHEN position('\x00'::bytea IN substr({key}, 2)) = 0
            AND position('\x5c7530303030'::bytea IN {key}) = 0 THEN {field}
        ELSE encode({key}, 'escape')
    END"""


def column_of(text: str) -> tuple[str, str]:
    """Return name and type of a view's column, as in ``day:date``; the type may be empty."""
    name, _, kind = text.partition(":")
    return name, kind.partition("(")[0]


@dataclass(frozen=True)
class PostgresTable:
    """One state's place in a table, its own or `shared`; `columns` name the view's fields."""

    name: str
    shared: str | None
    kind: StateType
    values: str
    columns: tuple[str, ...]
    serializer: Serializer

    @property
    def place(self) -> str:
        return self.shared or self.name

    @property
    def kept(self) -> str:
        """How entries are kept, as the catalog says it."""
        return f"{self.kind.value} {self.values} in {self.place}"

    @property
    def lead(self) -> bytes:
        """What keys begin with in a shared table; no name has a NUL."""
        return self.name.encode() + b"\0" if self.shared else b""

    @property
    def own(self) -> str:
        """The condition for rows of this state."""
        lead = self.lead.hex()
        return f"key >= '\\x{lead}' AND key < '\\x{lead[:-2]}01'" if lead else "true"

    @property
    def key(self) -> str:
        """The SQL of a row's key, without its lead."""
        return f"substr(coalesce(whole, key), {len(self.lead) + 1})"

    @property
    def types(self) -> dict[str, str]:
        """The columns beside the key, with their types."""
        return {name: TOKENS.get(name, self.values) for name in KINDS[self.kind].columns}

    @property
    def create(self) -> str:
        """The statement that makes the table, with room to update a row on its page."""
        types = ", ".join(
            f"{name} {kind} NOT NULL" if name in TOKENS else f"{name} {kind}"
            for name, kind in self.types.items()
        )
        return definition(
            f"CREATE TABLE {{table}} (key bytea PRIMARY KEY, whole bytea, {types}) "
            "WITH (fillfactor = 70)",
            table=self.place,
        )

    @property
    def create_view(self) -> str:
        """The statement that makes the view of committed values, of an opaque state."""
        key = self.key
        json = f"convert_from(substr({key}, 2), 'UTF8')"
        names, kinds = zip(*map(column_of, self.columns), strict=True)
        shown = [_FIELD.format(key=key, field=json)]
        if self.columns != DEFAULT_COLUMNS:
            shown = [
                _typed_field(kind, key, number)
                if kind not in ("", "string")
                else _FIELD.format(key=key, field=f"{json}::json ->> {number}")
                for number, kind in enumerate(kinds[:-1])
            ]
        shown.append("value")
        named = {f"name{number}": name for number, name in enumerate(names)}
        columns = ", ".join(
            f"{each} AS {{{name}}}" for each, name in zip(shown, named, strict=True)
        )
        return definition(
            f"""
            CREATE VIEW {{view}} AS
            WITH record AS MATERIALIZED (
                SELECT (told ->> 'committed')::bigint AS committed, (
                    SELECT jsonb_object_agg(pair ->> 0, pair -> 1)
                    FROM jsonb_array_elements(told -> 'exceptions') AS pair
                ) AS retried
                FROM (
                    SELECT convert_from(control, 'UTF8')::jsonb AS told
                    FROM {CATALOG}
                    WHERE name = convert_from('\\x{self.name.encode().hex()}', 'UTF8')
                ) AS control
                WHERE NOT starts_with(told ->> 'lineage', '{UNFINISHED}')
            )
            SELECT {columns} FROM (
                SELECT key, whole, CASE
                    WHEN txid <= committed
                        AND attempt = coalesce((retried ->> txid::text)::integer, 0)
                    THEN curr ELSE prev END AS value
                FROM {{table}} CROSS JOIN record WHERE {self.own}
            ) AS state WHERE value IS NOT NULL""",
            view=view_of(self.name),
            table=self.place,
            **named,
        )

    def keys(self, keys: Sequence[bytes]) -> Array:
        """Return `keys` as the index has them."""
        return array(BYTES, [self.lead + _index_key(key) for key in keys])

    def rows(self, keys: Sequence[bytes], values: Sequence[Any]) -> dict[str, Array]:
        """Return the columns that keep `values` under `keys`; None becomes a null."""
        kind = KINDS[self.kind]
        columns = dict(zip(kind.columns, kind.by_column(values), strict=True))
        return self.keyed(keys) | {
            name: array(LONG, column) if name in TOKENS else self.native(column)
            for name, column in columns.items()
        }

    def keyed(self, keys: Sequence[bytes]) -> dict[str, Array]:
        """Return the columns of keys: as the index has them, and whole where that is a digest."""
        wholes = [self.lead + key if _is_long(key) else None for key in keys]
        return {"keys": self.keys(keys), "whole": array(BYTES, wholes)}

    def values_of(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the values that `rows`, without their keys, keep; a row of nulls is absent."""
        kind = KINDS[self.kind]
        if self.values in ("json", "bytea") and rows:
            columns = list(zip(*rows, strict=True))
            kept = (load_all(self.serializer, column) for column in columns[kind.tokens :])
            rows = list(zip(*columns[: kind.tokens], *kept, strict=True))
        return kind.of_rows(rows)

    def native(self, column: Sequence[Any]) -> Array:
        """Return a column of values; raises SerializationError for one that it can't keep."""
        if self.values in ("json", "bytea"):
            made = iter(dump_all(self.serializer, [each for each in column if each is not None]))
            column = [None if value is None else next(made) for value in column]
        else:
            kind = int if self.values == "bigint" else float
            if set(map(type, column)) - {kind, type(None)} or not all(map(_fits, column)):
                raise _wrong_value(self.values, kind, column)
        return array(_ELEMENTS[self.values], column)


def _typed_field(kind: str, key: str, number: int) -> str:
    """Return the SQL that reads a key's field as `kind`; null if the field has another type."""
    kind = _ALIASES.get(kind, kind)
    # No text of a user's is read of it, so another character may stand for U+0000.
    json = rf"replace(convert_from(substr({key}, 2), 'UTF8'), '\u0000', '\u0020')::json"
    forms = []
    if kind in _TAGGED:
        sql, tag = _TAGGED[kind]
        forms.append(f"({json} -> {number} ->> '{tag}')::{sql}")
    if kind in _UNTAGGED:
        sql, form = _UNTAGGED[kind]
        text = f"({json} -> {number})::text"
        forms.append(f"CASE WHEN {text} ~ '{form}' THEN {text}::{sql} END")
    return rf"CASE WHEN substr({key}, 1, 1) = '\x00' THEN coalesce({', '.join(forms)}) END"


def view_of(name: str) -> str:
    """Return the name of a state's view."""
    return f"{name}_committed"


def _is_long(key: bytes) -> bool:
    return len(key) > _LONGEST or key.startswith(_DIGEST)


def _index_key(key: bytes) -> bytes:
    return _DIGEST + sha256(key).digest() if _is_long(key) else key


def _fits(value: Any) -> bool:
    return value is None or (value in _LONGS if type(value) is int else isfinite(value))


def _wrong_value(values: str, kind: type, column: Iterable[Any]) -> SerializationError:
    wrong = next(
        value
        for value in column
        if value is not None and (type(value) is not kind or not _fits(value))
    )
    name = type(wrong).__name__
    found = f"the {name} {wrong}" if type(wrong) is kind else f"a {name}"
    advice = f"The state's table keeps {values}; keep it with values='json' instead."
    return SerializationError("value", found, advice)
