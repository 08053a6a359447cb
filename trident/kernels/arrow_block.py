"""Blocks made of Arrow record batches, and columns as Arrow again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from trident.tuples.block import NOTHING, Block

_INPUT_ROWS = 8_192
"""The most rows of a block, so that a step that makes ten of each still fits in memory. In smaller
blocks, handing record batches to Spark would cost more than the kernels."""


class ArrowBlock(Block):
    """A block whose columns from Spark stay Arrow until a step reads them.

    `arrow` has one value for each of *Spark's* rows; `rows` says which of these each tuple is, None
    for all of them in order. `columns` are those that steps made.
    """

    __slots__ = ("_arrow", "_read", "_rows")

    def __init__(
        self,
        arrow: Mapping[str, pa.Array],
        length: int,
        columns: Mapping[str, Sequence[Any]] | None = None,
        rows: Any = None,
    ) -> None:
        super().__init__(columns or {}, length)
        self._arrow = {name: arrow[name] for name in arrow if name not in self._columns}
        self._rows = rows
        self._read: dict[str, Sequence[Any]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._arrow, *self._columns)

    def values(self, name: str) -> Sequence[Any]:
        if name not in self._arrow:
            return super().values(name)
        if name not in self._read:
            self._read[name] = python_values(self.arrow(name))
        return self._read[name]

    def arrow(self, name: str) -> pa.Array | None:
        """A column as Arrow; None where a step made it."""
        column = self._arrow.get(name)
        return column if column is None or self._rows is None else column.take(pa.array(self._rows))

    def added(self, columns: Mapping[str, Sequence[Any]]) -> Block:
        return ArrowBlock(self._arrow, self.length, {**self._columns, **columns}, self._rows)

    def only(self, names: Sequence[str]) -> Block:
        arrow = {name: self._arrow[name] for name in names if name in self._arrow}
        made = {name: self._columns[name] for name in names if name in self._columns}
        return ArrowBlock(arrow, self.length, made, self._rows)

    def repeated(self, counts: Sequence[int], carried: Sequence[str]) -> Block:
        if counts.count(1) == self.length:
            return self.only(carried)
        made = super().repeated(counts, [name for name in carried if name in self._columns])
        arrow = {name: self._arrow[name] for name in carried if name in self._arrow}
        if not arrow:
            return made
        rows = np.arange(self.length) if self._rows is None else self._rows
        columns = {name: made.values(name) for name in made.names}
        return ArrowBlock(arrow, made.length, columns, np.repeat(rows, counts))

    def kept(self, mask: Sequence[bool], carried: Sequence[str]) -> Block:
        return self.only(carried) if all(mask) else self.repeated(list(map(int, mask)), carried)

    @property
    def nbytes(self) -> int:
        arrow: int = sum(column.nbytes for column in self._arrow.values())
        return arrow + super().nbytes

    def utf8(self, name: str) -> list[bytes] | None:
        column = self.arrow(name)
        texts = (pa.string(), pa.large_string())
        if column is None or column.null_count or column.type not in texts:
            return super().utf8(name)
        encoded: list[bytes] = column.cast(pa.binary()).to_pylist()
        return encoded


def python_values(column: pa.Array) -> list[Any]:
    """The values of a column as Python has them on either engine: moments in UTC, maps as dicts.

    Spark hands them over in the session's time zone, which is nothing of theirs.
    """
    kind = column.type
    if not pa.types.is_nested(kind) and not pa.types.is_timestamp(kind):
        return cast("list[Any]", column.to_pylist())
    if _holds(kind, _is_zoned):
        column = column.cast(_in_utc(kind))
    if _holds(kind, pa.types.is_map):
        return cast("list[Any]", column.to_pylist(maps_as_pydicts="strict"))  # else lists of pairs
    return cast("list[Any]", column.to_pylist())


def _holds(kind: pa.DataType, what: Callable[[pa.DataType], bool]) -> bool:
    return what(kind) or any(_holds(part.type, what) for part in _parts(kind))


def _is_zoned(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _parts(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(index) for index in range(kind.num_fields)]


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """The type with all moments in UTC, as the zone of which Python's `datetime.UTC` is made."""
    if _is_zoned(kind):
        return pa.timestamp(kind.unit, "+00:00")
    parts = [part.with_type(_in_utc(part.type)) for part in _parts(kind)]
    if pa.types.is_struct(kind):
        return pa.struct(parts)
    if pa.types.is_map(kind):
        return pa.map_(*parts[0].type)
    if pa.types.is_large_list(kind):
        return pa.large_list(*parts)
    return pa.list_(*parts) if pa.types.is_list(kind) else kind


def arrow_column(block: Block, name: str, kind: pa.DataType) -> pa.Array:
    """A column as Arrow of a given type."""
    column = block.arrow(name) if isinstance(block, ArrowBlock) else None
    if column is None:
        return pa.array(block.values(name), kind)
    return column if column.type == kind else column.cast(kind)


def blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Record batches as blocks of bounded size."""
    for batch in batches:
        for start in range(0, batch.num_rows, _INPUT_ROWS):
            part = batch.slice(start, _INPUT_ROWS)
            columns = dict(zip(part.schema.names, part.columns, strict=True))
            yield ArrowBlock(columns, part.num_rows)


def block_of_batches(batches: Sequence[pa.RecordBatch]) -> Block:
    """Record batches as one block."""
    return block_of_table(pa.Table.from_batches(batches)) if batches else NOTHING


def block_of_table(table: pa.Table) -> Block:
    """A table as one block."""
    columns = {
        name: _array(column) for name, column in zip(table.schema.names, table.columns, strict=True)
    }
    return ArrowBlock(columns, table.num_rows)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
