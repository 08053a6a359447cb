"""Tuples as columns: what kernels take and make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, repeat
from operator import itemgetter
from sys import getsizeof
from typing import Any


class Block:
    """Some tuples of one partition, a list for each field; immutable.

    A block without tuples has an empty column of any name.

    Examples
    --------
    >>> block = block_of(["word", "n"], [("cat", 1), ("dog", 2)])
    >>> block.values("n"), list(block.tuples(["n", "word"]))
    ([1, 2], [(1, 'cat'), (2, 'dog')])
    """

    __slots__ = ("_columns", "length")

    def __init__(self, columns: Mapping[str, Sequence[Any]], length: int) -> None:
        self._columns = columns
        self.length = length

    @property
    def names(self) -> tuple[str, ...]:
        """The fields."""
        return tuple(self._columns)

    def values(self, name: str) -> Sequence[Any]:
        """The values of a field."""
        return self._columns[name] if self.length else ()

    def tuples(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The tuples of these fields."""
        if not names:
            return repeat((), self.length)
        return zip(*map(self.values, names), strict=True)

    def tuple_at(self, position: int, names: Sequence[str]) -> tuple[Any, ...]:
        """One tuple of these fields."""
        return tuple([self.values(name)[position] for name in names])

    def added(self, columns: Mapping[str, Sequence[Any]]) -> Block:
        """The same tuples with more fields, or with other values in some."""
        return Block({**self._columns, **columns}, self.length)

    def only(self, names: Sequence[str]) -> Block:
        """The same tuples with these fields only."""
        if not self.length:
            return NOTHING
        columns = self._columns
        if len(names) == len(columns):
            return self
        return Block({name: columns[name] for name in names}, self.length)

    def renamed(self, names: Mapping[str, str]) -> Block:
        """The fields that `names` maps to their new names, and no others."""
        return Block({new: self.values(old) for old, new in names.items()}, self.length)

    def repeated(self, counts: Sequence[int], carried: Sequence[str]) -> Block:
        """Each tuple as often as its count says, with the `carried` fields only."""
        if counts.count(1) == self.length:
            return self.only(carried)
        columns = {
            name: list(chain.from_iterable(map(repeat, self.values(name), counts)))
            for name in carried
        }
        return Block(columns, sum(counts))

    def kept(self, mask: Sequence[bool], carried: Sequence[str]) -> Block:
        """The tuples whose mask is true, with the `carried` fields only."""
        if all(mask):
            return self.only(carried)
        columns = {name: list(compress(self.values(name), mask)) for name in carried}
        return Block(columns, sum(mask))

    def every(self, step: int, start: int) -> Block:
        """Every `step`-th tuple from `start` on."""
        columns = {name: self.values(name)[start::step] for name in self.names}
        return Block(columns, len(range(start, self.length, step)))

    @property
    def nbytes(self) -> int:
        """Roughly how many bytes the values take."""
        return sum(map(_nbytes, self._columns.values()))

    def utf8(self, name: str) -> list[bytes] | None:
        """A column of strings as UTF-8; None where it holds anything else, or a lone surrogate."""
        values = self.values(name)
        if set(map(type, values)) != {str}:
            return None
        try:
            return list(map(str.encode, values))
        except UnicodeEncodeError:
            return None


NOTHING = Block({}, 0)

_SAMPLED = 50
"""At least so many values of a longer sequence are looked at to tell its size."""


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
    columns = {
        name: list(chain.from_iterable([block.values(name) for block in filled]))
        for name in filled[0].names
    }
    return Block(columns, sum(block.length for block in filled))
