"""The types of the columns that leave a stage of Python: Spark's, and Arrow's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from trident.spark.versions import collect_table, create_data_frame
from trident.tuples.field_types import parts
from trident.tuples.fields import Fields

_making = Lock()
_OTHERWISE = {"char": "string", "varchar": "string", "timestamp": "timestamp_ltz"}

ROW = "__trident_row"
"""The only column of a stage that hands on nothing but the number of its rows."""


@dataclass(frozen=True)
class Schema:
    """Some columns, as Spark and as Arrow know them."""

    struct: StructType
    arrow: pa.Schema


class Schemas:
    """Looks schemas up, by a small job without tasks, and keeps those that it has found."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._known: dict[tuple[tuple[str, str], ...], Schema] = {}

    def of_fields(self, fields: Fields) -> Schema:
        """Return the schema of fields, whose types are all known."""
        return self.of({name: str(kind) for name, kind in fields.types.items()})

    def of(self, columns: Mapping[str, str]) -> Schema:
        """Return the schema of columns with DDL types; that of :data:`ROW` for no columns."""
        key = tuple(columns.items()) or ((ROW, "boolean"),)
        if key not in self._known:
            ddl = ", ".join(f"{quote(name)} {ddl_text(kind)}" for name, kind in key)
            empty = create_frame(self._session, [], ddl)
            # With a limit Spark sees that there is nothing to run: else it starts Python workers.
            self._known[key] = Schema(empty.schema, collect_table(empty.limit(0)).schema)
        return self._known[key]


def ddl_text(kind: str) -> str:
    """Return the type as Spark has to be given it, whatever its session says.

    There are strings for char and varchar, which Arrow and Spark's plans don't have, and what
    ``timestamp`` means can be set.

    Examples
    --------
    >>> ddl_text("map<char(2),varchar(9)>"), ddl_text("struct<timestamp:timestamp>")
    ('map<string,string>', 'struct<`timestamp`:timestamp_ltz>')
    """
    head, kinds, names = parts(kind)
    texts = list(map(ddl_text, kinds))
    if head == "struct":
        members = zip(map(quote, names), texts, strict=True)
        return f"struct<{','.join(map(':'.join, members))}>"
    if texts:
        return f"{head}<{','.join(texts)}>"
    return _OTHERWISE.get(head, kind)


def create_frame(session: SparkSession, data: Any, schema: StructType | str) -> DataFrame:
    """``createDataFrame``, but the process's active session stays the same."""
    with _making:
        before = SparkSession._activeSession
        try:
            return create_data_frame(session, data, schema)
        finally:
            SparkSession._activeSession = before


def quote(name: str) -> str:
    """A column's name as SQL takes it.

    Examples
    --------
    >>> quote("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def select_columns(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """These columns only, in this order; :data:`ROW` where there are none, to keep the rows."""
    if not names:
        return frame.select(F.lit(None).cast("boolean").alias(ROW))
    return frame.select(*map(quote, names))
