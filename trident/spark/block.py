"""The rows of a fused stage, held as columns between its steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa

OUTPUT_ROWS = 131_072
"""The most rows in a record batch that a stage hands back: one that explodes stays bounded."""

_INPUT_ROWS = 8_192
"""The most rows that are worked on at once, so that a tenfold explosion stays small; with fewer,
handing small record batches to Spark costs more than the steps do."""


class Block:
    """Some rows as columns; a column of the stage's input stays Arrow until a step reads it.

    Parameters
    ----------
    arrow : mapping of str to pyarrow.Array
        The columns that come from the input, one value for each of *its* rows.
    lists : mapping of str to list
        The columns that steps made.
    length : int
        The number of rows.
    rows : numpy.ndarray or None
        Which row of the input each row is; None for all of them in order.
    """

    __slots__ = ("_arrow", "_lists", "_read", "_rows", "length")

    def __init__(
        self,
        arrow: Mapping[str, pa.Array],
        lists: Mapping[str, Sequence[Any]],
        length: int,
        rows: Any = None,
    ) -> None:
        self._arrow = arrow
        self._lists = lists
        self._rows = rows
        self._read: dict[str, Sequence[Any]] = {}
        self.length = length

    def values(self, name: str) -> Sequence[Any]:
        """A column as Python values."""
        made = self._lists.get(name)
        if made is not None:
            return made
        if name not in self._read:
            self._read[name] = _python_values(self.input_array(name))
        return self._read[name]

    @property
    def made_names(self) -> tuple[str, ...]:
        """The columns that steps made."""
        return tuple(self._lists)

    def input_array(self, name: str) -> pa.Array:
        """A column of the input as Arrow."""
        column = self._arrow[name]
        return column if self._rows is None else column.take(pa.array(self._rows))

    def input_column(self, name: str) -> pa.Array | None:
        """A column as Arrow where it came as that; None where a step made it."""
        return None if name in self._lists else self.input_array(name)

    def array(self, name: str, kind: pa.DataType) -> pa.Array:
        """A column as Arrow of a given type."""
        if name in self._lists:
            return pa.array(self._lists[name], kind)
        column = self.input_array(name)
        return column if column.type == kind else column.cast(kind)

    def tuples(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of these columns only."""
        if not names:
            return repeat((), self.length)
        return zip(*map(self.values, names), strict=True)

    def added(self, columns: Mapping[str, Sequence[Any]]) -> Block:
        """The same rows with more columns."""
        return Block(self._arrow, {**self._lists, **columns}, self.length, self._rows)

    def repeated(self, counts: Sequence[int], carried: Sequence[str]) -> Block:
        """Each row as often as its count says; only the `carried` columns."""
        rows = np.arange(self.length) if self._rows is None else self._rows
        lists = {
            name: list(chain.from_iterable(map(repeat, self._lists[name], counts)))
            for name in carried
            if name in self._lists
        }
        return Block(self._arrow, lists, sum(counts), np.repeat(rows, counts))

    def kept(self, mask: Sequence[bool], carried: Sequence[str]) -> Block:
        """The rows whose mask is true; only the `carried` columns."""
        return self.repeated(list(map(int, mask)), carried)


def _python_values(column: pa.Array) -> Any:
    if _holds_a_map(column.type):
        return column.to_pylist(maps_as_pydicts="strict")  # else lists of pairs
    return column.to_pylist()


def _holds_a_map(kind: pa.DataType) -> bool:
    parts = (kind.field(index).type for index in range(kind.num_fields))
    return pa.types.is_map(kind) or any(map(_holds_a_map, parts))


def block_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Block:
    """A block of rows that a step made.

    Examples
    --------
    >>> block_of(["word", "n"], [("cat", 1), ("dog", 2)]).values("n")
    (1, 2)
    """
    return Block({}, columns_of(names, rows), len(rows))


def columns_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Rows turned into columns."""
    columns = zip(*rows, strict=True) if rows else repeat(())
    return dict(zip(names, columns, strict=False))


def blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Cut record batches into blocks of a size to work on."""
    for batch in batches:
        for start in range(0, batch.num_rows, _INPUT_ROWS):
            part = batch.slice(start, _INPUT_ROWS)
            columns = dict(zip(part.schema.names, part.columns, strict=True))
            yield Block(columns, {}, part.num_rows)


def block_of_table(table: pa.Table) -> Block:
    """A table as one block."""
    columns = {
        name: _array(column) for name, column in zip(table.schema.names, table.columns, strict=True)
    }
    return Block(columns, {}, table.num_rows)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
