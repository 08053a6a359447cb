"""Arrow's columns as PostgreSQL's COPY reads them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import WriteOptions, write_csv

from trident.backends.postgres.driver import definition

# An unquoted empty field is null, a quoted one is the empty text.
_OPTIONS = WriteOptions(include_header=False, quoting_style="all_valid")
_ROWS = 8192
"""Rows sent at once: the server reads these while the next are prepared."""


def copy(connection: Any, table: str, rows: pa.Table) -> None:
    """Append rows to `table`, which is quoted, by a connection of psycopg's."""
    names = [definition("{name}", name=name) for name in rows.schema.names]
    statement = f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT csv)"
    with connection.cursor().copy(statement) as target:
        for batch in rows.to_batches(max_chunksize=_ROWS):
            columns = [_written(column) for column in batch.columns]
            sink = pa.BufferOutputStream()
            write_csv(pa.RecordBatch.from_arrays(columns, names), sink, _OPTIONS)
            target.write(sink.getvalue().to_pybytes())


def _written(column: pa.Array) -> pa.Array:
    """Return a column that write_csv() writes as PostgreSQL reads it."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _written(column.dictionary_decode())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # Arrow would look up the zone of each value, which takes as long as all else together.
        told = column.cast(pa.timestamp("us")).cast(pa.string())
        return pc.binary_join_element_wise(told, "Z", "")
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if v is None else rf"\x{v.hex()}" for v in column.to_pylist()])
    if pa.types.is_nested(kind):
        return pa.array([None if v is None else _literal(v) for v in column.to_pylist()])
    return column


def _literal(value: Any) -> str:
    """Return an element of an array, or an array, as text."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"{{{','.join(map(_literal, value))}}}"
    text = rf"\x{value.hex()}" if isinstance(value, bytes) else str(value)
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'
