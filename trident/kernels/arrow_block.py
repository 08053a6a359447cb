"""Blocks made of Arrow record batches, and columns as Arrow again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from trident.tuples.block import NOTHING, Block

_INPUT_ROWS = 8_192
"""The most rows of a block, so that a step that makes ten of each still fits in memory. In smaller
blocks, handing record batches to Spark would cost more than the kernels."""


def arrow_column(block: Block, name: str, kind: pa.DataType) -> pa.Array:
    """A column as Arrow of a given type."""
    column = block.arrow(name)
    if column is None:
        return pa.array(block.values(name), kind)
    return column if column.type == kind else column.cast(kind)


def blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Record batches as blocks of bounded size."""
    for batch in batches:
        for start in range(0, batch.num_rows, _INPUT_ROWS):
            part = batch.slice(start, _INPUT_ROWS)
            columns = dict(zip(part.schema.names, part.columns, strict=True))
            yield Block({}, part.num_rows, columns)


def block_of_batches(batches: Sequence[pa.RecordBatch]) -> Block:
    """Record batches as one block."""
    return block_of_table(pa.Table.from_batches(batches)) if batches else NOTHING


def block_of_table(table: pa.Table) -> Block:
    """A table as one block."""
    columns = {
        name: _array(column) for name, column in zip(table.schema.names, table.columns, strict=True)
    }
    return Block({}, table.num_rows, columns)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
