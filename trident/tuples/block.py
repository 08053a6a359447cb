"""Tuples as columns: what kernels take and make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, compress, repeat
from operator import is_, itemgetter
from sys import getsizeof
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MANY = 12_000
"""From this many tuples on, Arrow's kernels are quicker than Python, even if lists become Arrow."""

_NO_ARRAYS: Mapping[str, pa.Array] = {}


@cache
def _arrow() -> Any:
    """The module that makes Arrow of lists, imported for many tuples; None without Arrow."""
    try:
        from trident.tuples import arrow_columns
    except ImportError:
        return None
    return arrow_columns


class Block:
    """Some tuples of one partition by columns, each a list or an Arrow array; immutable.

    The other form of a column is made when it is asked for, and kept. A block without tuples has an
    empty column of any name.

    Examples
    --------
    >>> block = block_of(["word", "n"], [("cat", 1), ("dog", 2)])
    >>> block.values("n"), list(block.tuples(["n", "word"]))
    ([1, 2], [(1, 'cat'), (2, 'dog')])
    """

    __slots__ = ("_arrays", "_lists", "_others", "length")

    def __init__(
        self,
        lists: Mapping[str, Sequence[Any]],
        length: int,
        arrays: Mapping[str, pa.Array] = _NO_ARRAYS,
    ) -> None:
        self._lists = lists
        self._arrays = arrays
        self._others: dict[str, Any] = {}
        self.length = length

    @property
    def names(self) -> tuple[str, ...]:
        """The fields."""
        return (*self._arrays, *self._lists)

    def values(self, name: str) -> Sequence[Any]:
        """The values of a field."""
        if not self.length:
            return ()
        if name in self._lists:
            return self._lists[name]
        if name not in self._others:
            self._others[name] = _arrow().python_values(self._arrays[name])
        found: Sequence[Any] = self._others[name]
        return found

    def arrow(self, name: str) -> pa.Array | None:
        """The values of a field, if they came as Arrow."""
        return self._arrays.get(name)

    @property
    def suits_arrow(self) -> bool:
        """Whether Arrow's kernels are quicker than Python for these tuples."""
        return bool(self._arrays) or (self.length >= MANY and _arrow() is not None)

    def to_arrow(self, name: str) -> pa.Array | None:
        """A field as Arrow, for whole columns; None where Python is quicker, where Arrow can't hold
        it, or without Arrow."""
        if name in self._arrays:
            return self._arrays[name]
        if name not in self._others:
            made = _arrow().array_of(self._lists[name]) if self.suits_arrow else None
            self._others[name] = made
        return self._others[name]

    def tuples(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The tuples of these fields."""
        if not names:
            return repeat((), self.length)
        return zip(*map(self.values, names), strict=True)

    def tuple_at(self, position: int, names: Sequence[str]) -> tuple[Any, ...]:
        """One tuple of these fields."""
        return tuple([self.values(name)[position] for name in names])

    def added(
        self, lists: Mapping[str, Sequence[Any]], arrays: Mapping[str, pa.Array] = _NO_ARRAYS
    ) -> Block:
        """The same tuples with more fields, or with other values in some."""
        if not (self._arrays or arrays):
            return Block({**self._lists, **lists}, self.length)
        same = self.only([name for name in self.names if name not in lists and name not in arrays])
        return same._with({**same._lists, **lists}, {**same._arrays, **arrays})

    def only(self, names: Sequence[str]) -> Block:
        """The same tuples with these fields only."""
        if not self.length:
            return NOTHING
        if len(names) == len(self._lists) + len(self._arrays):
            return self
        lists, arrays = self._lists, self._arrays
        if not arrays:
            return self._with({name: lists[name] for name in names}, arrays)
        return self._with(
            {name: lists[name] for name in names if name not in arrays},
            {name: arrays[name] for name in names if name in arrays},
        )

    def _with(self, lists: Mapping[str, Sequence[Any]], arrays: Mapping[str, pa.Array]) -> Block:
        """Fields of this block, and new ones."""
        made = Block(lists, self.length, arrays)
        for name, column in self._others.items():
            before = self._lists.get(name), self._arrays.get(name)
            if all(map(is_, before, (lists.get(name), arrays.get(name)))):
                made._others[name] = column
        return made

    def renamed(self, names: Mapping[str, str]) -> Block:
        """The fields that `names` maps to their new names, and no others."""
        lists, arrays = self._lists, self._arrays
        return Block(
            {new: lists[old] for old, new in names.items() if old in lists},
            self.length,
            {new: arrays[old] for old, new in names.items() if old in arrays},
        )

    def repeated(self, counts: Sequence[int], carried: Sequence[str]) -> Block:
        """Each tuple as often as its count says, with the `carried` fields only."""
        if counts.count(1) == self.length:
            return self.only(carried)
        if any(name in self._arrays for name in carried):
            return self.taken(_arrow().repeated_rows(counts), carried)
        columns = {
            name: list(chain.from_iterable(map(repeat, self._lists[name], counts)))
            for name in carried
        }
        return Block(columns, sum(counts))

    def taken(self, rows: pa.Array, carried: Sequence[str]) -> Block:
        """The tuples at these ascending positions, with the `carried` fields only."""
        came = {name: self._arrays[name] for name in carried if name in self._arrays}
        made = {name: _arrow().taken(column, rows) for name, column in came.items()}
        arrays = {name: column for name, column in made.items() if column is not None}
        listed = [name for name in carried if name not in arrays]
        places = rows.to_pylist() if listed else ()
        lists = {name: list(map(self.values(name).__getitem__, places)) for name in listed}
        return Block(lists, len(rows), arrays)

    def kept(self, mask: Sequence[bool], carried: Sequence[str]) -> Block:
        """The tuples whose mask is true, with the `carried` fields only."""
        if all(mask):
            return self.only(carried)
        if any(name in self._arrays for name in carried):
            return self.taken(_arrow().repeated_rows(mask), carried)
        columns = {name: list(compress(self._lists[name], mask)) for name in carried}
        return Block(columns, sum(mask))

    def every(self, step: int, start: int) -> Block:
        """Every `step`-th tuple from `start` on."""
        places = range(start, self.length, step)
        if self._arrays:
            return self.taken(_arrow().rows_of(places), self.names)
        lists = {name: values[start::step] for name, values in self._lists.items()}
        return Block(lists, len(places))

    def between(self, start: int, stop: int) -> Block:
        """The tuples from one position up to another, or to the end."""
        lists = {name: values[start:stop] for name, values in self._lists.items()}
        arrays = {name: column[start:stop] for name, column in self._arrays.items()}
        return Block(lists, min(stop, self.length) - start, arrays)

    @property
    def nbytes(self) -> int:
        """Roughly how many bytes the values take."""
        arrays: int = sum(column.nbytes for column in self._arrays.values())
        return arrays + sum(map(_nbytes, self._lists.values()))

    def utf8(self, name: str) -> list[bytes] | None:
        """A column of strings as UTF-8; None where it holds anything else, or a lone surrogate."""
        if name in self._arrays:
            encoded: list[bytes] | None = _arrow().utf8(self._arrays[name])
            return encoded
        values = self.values(name)
        if set(map(type, values)) != {str}:
            return None
        try:
            return list(map(str.encode, values))
        except UnicodeEncodeError:
            return None


NOTHING = Block({}, 0)

_SAMPLED = 50
"""How many values of a longer sequence are measured, at least, to estimate its size."""


def _nbytes(values: Sequence[Any]) -> int:
    """Roughly how many bytes the values of a sequence take, from some of them."""
    sample = values[:: max(1, len(values) // _SAMPLED)]
    return sum(map(_size, sample)) * len(values) // (len(sample) or 1)


def _size(value: Any) -> int:
    size = getsizeof(value)
    match value:
        case list() | tuple():
            return size + _nbytes(value)
        case dict():
            return size + _nbytes(list(value)) + _nbytes(list(value.values()))
    return size


def block_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Block:
    """A block of tuples."""
    return Block(columns_of(names, rows), len(rows))


def columns_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Tuples as columns."""
    return {name: list(map(itemgetter(index), rows)) for index, name in enumerate(names)}


def joined(blocks: Iterable[Block]) -> Block:
    """The tuples of several blocks of the same fields as one block."""
    filled = [block for block in blocks if block.length]
    if not filled:
        return NOTHING
    if len(filled) == 1:
        return filled[0]
    lists, arrays = {}, {}
    for name in filled[0].names:
        columns = [block.arrow(name) for block in filled]
        of_arrow = not any(column is None for column in columns)
        column = _arrow().concatenated(columns) if of_arrow else None
        if column is not None:
            arrays[name] = column
        else:
            lists[name] = list(chain.from_iterable([block.values(name) for block in filled]))
    return Block(lists, sum(block.length for block in filled), arrays)
