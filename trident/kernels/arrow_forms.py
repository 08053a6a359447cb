"""The library's own operations over Arrow columns: no tuple becomes Python objects.

A subclass has no such form, as it may do something else. A form gives None where it would not make
exactly what Python makes; see `column_forms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trident.operations.builtin import Count, Equals, FilterNull, Max, Min, Negate, Sum
from trident.tuples.block import NOTHING, Block

_TEXTS = (pa.string(), pa.large_string())
_WHOLE = (pa.int64(), pa.int32(), pa.int16(), pa.int8())
_KEYS = (*_TEXTS, *_WHOLE, pa.bool_(), pa.date32(), pa.binary(), pa.large_binary())
"""Types whose values Arrow compares as Python does; it takes null for one more key."""
_ORDERED = (*_TEXTS, *_WHOLE, pa.binary(), pa.large_binary())
_LONG_MAX = 2**63 - 1
_MOST_WAITING = 2**25
"""How many bytes of a partition may wait to be aggregated together; this bounds memory."""
_VALUE, _ROW = "value", "row"
_OPTIONS = pc.ScalarAggregateOptions(skip_nulls=True, min_count=0)
_FUNCTIONS: Mapping[type, str] = {Count: "sum", Sum: "sum", Min: "min", Max: "max"}


def words(block: Block, name: str) -> tuple[pa.Array, pa.Array] | None:
    """The words of all texts, as `Split` makes them, and for each the position of its text."""
    texts = block.to_arrow(name)
    if texts is None or texts.type not in _TEXTS:
        return None
    # It parts at what Python calls white space, but in ASCII in half of the time.
    split = pc.ascii_split_whitespace if _is_plain(texts) else pc.utf8_split_whitespace
    lists = split(texts)
    found, places = lists.flatten(), pc.list_parent_indices(lists)
    filled = pc.greater(pc.binary_length(found), 0)  # at either end of a text a word is empty
    if pc.all(filled).as_py():
        return found, places
    return found.filter(filled), places.filter(filled)


def _is_plain(texts: pa.Array) -> bool:
    """Whether all texts are of printable ASCII, without tabs and the like."""
    width = np.int64 if texts.type == pa.large_string() else np.int32
    _, offsets, data = texts.buffers()
    if data is None:
        return True
    bounds = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return not len(letters) or bool(letters.min() >= ord(" ") and letters.max() < 127)


def kept_rows(filter: object, block: Block, names: Sequence[str]) -> pa.Array | None:
    """The positions of the tuples that a filter keeps, where its columns are Arrow already."""
    kept = _mask(filter, block, names)
    return None if kept is None else pc.indices_nonzero(kept)


def _mask(filter: object, block: Block, names: Sequence[str]) -> pa.Array | None:
    if type(filter) is Negate:
        dropped = _mask(filter.filter, block, names)
        return None if dropped is None else pc.invert(dropped)
    columns = [column for column in map(block.arrow, names) if column is not None]
    if not columns or len(columns) < len(names):
        return None
    if type(filter) is FilterNull:
        return reduce(pc.and_, map(pc.is_valid, columns))
    if type(filter) is Equals and len(columns) == 2 and columns[0].type == columns[1].type in _KEYS:
        one, other = columns
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        return pc.or_(pc.fill_null(pc.equal(one, other), False), both_null)
    return None


class GroupTotals:
    """The result of `Count`, `Sum`, `Min` or `Max` for each group; it takes blocks in order, as the
    order decides what floats add up to."""

    def __init__(self, function: str, group: Sequence[str], value: str | None) -> None:
        self._function = function
        self._group = group
        self._value = value
        self._keys = list(map(str, range(len(group))))
        self._schema: pa.Schema | None = None
        self._made: pa.Table | None = None
        self._tables: list[pa.Table] = []
        self._waiting = 0

    def take_in(self, block: Block) -> bool:
        """Take a block in; return False where its values have no form in Arrow."""
        values = self._values(block)
        keys = [block.to_arrow(name) for name in self._group] if values is not None else [None]
        if any(key is None or key.type not in _KEYS for key in keys):
            return False
        # Copies, as a column of Spark's keeps the memory of all columns of its record batch.
        columns = [pa.concat_arrays([column]) for column in (*keys, values)]
        table = pa.table(columns, [*self._keys, _VALUE])
        if self._schema not in (None, table.schema):
            return False
        # Where keys are many as much waits as there is, as each time all of them are gone over.
        made = 0 if self._made is None else self._made.nbytes
        if self._waiting > max(made, _MOST_WAITING) and not self._fold():
            return False
        self._schema = table.schema
        self._tables.append(table)
        self._waiting += table.nbytes
        return True

    def _values(self, block: Block) -> pa.Array | None:
        if self._value is None:
            return pa.repeat(1, block.length)
        values = block.to_arrow(self._value)
        if values is None or self._function != "sum":
            return values if values is not None and values.type in _ORDERED else None
        if values.type in _WHOLE:
            return values.cast(pa.int64())
        # Without a group Arrow adds floats in pairs; and a group of nulls alone comes to an int.
        is_alike = values.type == pa.float64() and not values.null_count and self._group
        return values if is_alike else None

    def _fold(self) -> bool:
        """Aggregate what waits; return False where sums may have more than 64 bits."""
        if not self._tables:
            return True
        made = [] if self._made is None else [self._made]
        table = pa.concat_tables([*made, *self._tables])
        values = table.schema.field(_VALUE).type
        if self._value is not None and self._function == "sum" and values == pa.int64():
            least, most = (value.as_py() or 0 for value in pc.min_max(table[_VALUE]).values())
            if max(most, -least) * len(table) > _LONG_MAX:
                return False
        counts_first = self._value is None and not made and len(self._keys) == 1
        columns = _count_keys(table["0"]) if counts_first else self._aggregate(table)
        self._made = pa.table(columns, [*self._keys, _VALUE])
        self._tables, self._waiting = [], 0
        return True

    def _aggregate(self, table: pa.Table) -> list[pa.ChunkedArray]:
        table = table.append_column(_ROW, pa.array(np.arange(len(table))))
        found = table.group_by(self._keys, use_threads=False).aggregate(
            [(_VALUE, self._function, _OPTIONS), (_ROW, "min")]
        )
        # Arrow hardly ever leaves the order in which groups came, but it does.
        found = found.take(pa.array(np.argsort(found[f"{_ROW}_min"].to_numpy())))
        return [found[name] for name in (*self._keys, f"{_VALUE}_{self._function}")]

    def finish(self, output: str) -> Block | None:
        """All groups and their results; None where sums may have more than 64 bits."""
        return self.so_far(output) if self._fold() else None

    def so_far(self, output: str) -> Block:
        """The groups of all blocks that are not waiting."""
        return NOTHING if self._made is None else _block_of((*self._group, output), self._made)

    def waiting(self) -> Iterator[Block]:
        """The blocks that no total includes yet, with the fields that are aggregated."""
        names = self._group if self._value is None else (*self._group, self._value)
        return (_block_of(names, table) for table in self._tables)


def _block_of(names: Sequence[str], table: pa.Table) -> Block:
    """The first columns of a table, one for each name."""
    columns = [column.combine_chunks() for column in table.columns[: len(names)]]
    return Block({}, len(table), dict(zip(names, columns, strict=True)))


def _count_keys(keys: pa.ChunkedArray) -> list[pa.Array]:
    """The distinct keys and their counts; this takes a third of the time of other aggregates."""
    codes = pa.concat_arrays(keys.chunks).dictionary_encode(null_encoding="encode")
    counts = np.bincount(codes.indices.to_numpy(), minlength=len(codes.dictionary))
    return [codes.dictionary, pa.array(counts, pa.int64())]


def group_totals(
    combiner: object, group: Sequence[str], field: str | None, *, partial: bool
) -> GroupTotals | None:
    """What takes in tuples, or `partial` totals, of a partition; None for another combiner."""
    function = _FUNCTIONS.get(type(combiner))
    if function is None:
        return None
    return GroupTotals(function, group, None if type(combiner) is Count and not partial else field)
