"""What only PostgreSQL does with rows: COPY, MERGE, and what a table of its users has beside."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident import FixedBatchSpout, Rows, TridentTopology
from trident.backends.rows.copying import copy
from trident.states.errors import StateUnavailableError
from trident.testing.servers.promised import Served

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.text(
    "\\\"',{}\n\r\t.Nn "
)
MOMENT = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31, 23, 59, 59))
COLUMNS: dict[str, tuple[str, pa.DataType, st.SearchStrategy[Any]]] = {
    "text": ("text", pa.string(), TEXT),
    "words": ("varchar(9)", pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["", "a b"])),
    "long": ("bigint", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int": ("integer", pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "double": ("double precision", pa.float64(), st.floats()),
    "float": ("real", pa.float32(), st.floats(width=32)),
    "decimal": (
        "numeric(38, 10)",
        pa.decimal128(38, 10),
        st.decimals(Decimal(-(10**27)), Decimal(10**27), places=10),
    ),
    "boolean": ("boolean", pa.bool_(), st.booleans()),
    "binary": ("bytea", pa.binary(), st.binary()),
    "date": ("date", pa.date32(), st.dates()),
    "time": ("time", pa.time64("us"), st.times()),
    "at": ("timestamptz", pa.timestamp("us", "UTC"), MOMENT.map(lambda at: at.replace(tzinfo=UTC))),
    "zoned": (
        "timestamptz",
        pa.timestamp("us", "Asia/Tokyo"),
        st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    ),
    "local": ("timestamp", pa.timestamp("us"), MOMENT),
    "json": ("jsonb", pa.string(), st.just('{"a": "\\u00e9\\n", "b": [null, 1e3]}')),
    "uuid": ("uuid", pa.string(), st.uuids().map(str)),
    "texts": ("text[]", pa.list_(pa.string()), st.lists(st.none() | TEXT, max_size=3)),
    "longs": ("bigint[]", pa.large_list(pa.int64()), st.lists(st.none() | st.integers(0, 9))),
    "blobs": ("bytea[]", pa.list_(pa.binary()), st.lists(st.binary(max_size=3), max_size=2)),
    "moments": ("timestamp[]", pa.list_(pa.timestamp("us")), st.lists(MOMENT, max_size=2)),
    "square": (
        "boolean[]",
        pa.list_(pa.list_(pa.bool_())),
        st.lists(st.tuples(st.booleans(), st.booleans()).map(list), max_size=2),
    ),
}
ROWS = st.lists(st.tuples(*[st.none() | values for _, _, values in COLUMNS.values()]), max_size=4)


@pytest.fixture(scope="module")
def connection(postgres_server: Served) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, _, _) in COLUMNS.items())
        connection.execute("SET timezone = 'Asia/Tokyo'")
        connection.execute(f'CREATE TEMPORARY TABLE "all" ({columns})')
        yield connection


@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_whatever_a_column_holds_is_copied(
    connection: psycopg.Connection[Any], rows: list[tuple[Any, ...]]
) -> None:
    names = [*COLUMNS]
    kinds = [kind for _, kind, _ in COLUMNS.values()]
    columns = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(kinds)]
    copy(connection, '"all"', pa.table(columns, names=names))
    shown = '", "'.join(names).replace('"json"', '"json"::text').replace('"uuid"', '"uuid"::text')
    found = connection.execute(f'DELETE FROM "all" RETURNING "{shown}"', binary=True).fetchall()
    assert list(map(_comparable, found)) == list(map(_comparable, rows))


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row in which NaN is equal to itself, and 0.0 not to -0.0; of JSON whether it is there."""
    told = {**dict(zip(COLUMNS, row, strict=True)), "json": row[[*COLUMNS].index("json")] is None}
    return tuple(repr(value) if isinstance(value, float) else value for value in told.values())


def test_a_user_without_the_rights_is_told_which_to_have(postgres_server: Served) -> None:
    user, shop = f"u{uuid4().hex[:8]}", f"s{uuid4().hex[:8]}"
    host = postgres_server.url.partition("@")[2]
    topology = TridentTopology()
    rows = Rows(f"postgresql://{user}@{host}", (shop, "orders"), "id")
    topology.newStream("rows", FixedBatchSpout("id long", 1, [1])).partitionPersist(rows)
    with psycopg.connect(postgres_server.url, autocommit=True) as server:
        server.execute(f"CREATE ROLE {user} LOGIN; CREATE SCHEMA {shop}")
        try:
            with pytest.raises(StateUnavailableError, match="USAGE and CREATE on its schema"):
                topology.start()
        finally:
            server.execute(f"DROP SCHEMA {shop}; DROP OWNED BY {user}; DROP ROLE {user}")
