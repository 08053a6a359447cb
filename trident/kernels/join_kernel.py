"""The kernel of a join: matches the tuples of several streams by their keys, by a hash table."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from types import NoneType
from typing import Any, NamedTuple

from trident.kernels.keys import group_keys
from trident.kernels.task import StepName, Task
from trident.tuples.block import NOTHING, Block

Pick = tuple[int | None, ...]
"""Which tuple of each stream makes an output tuple; None where the stream is missing."""


class _Table(NamedTuple):
    """The tuples of one stream: the positions of each key, and of those without one."""

    of_key: Mapping[Hashable, Sequence[int]]
    without: Sequence[int]


@dataclass(frozen=True)
class JoinKernel:
    """Joins the tuples of streams in one partition, a block each, so it is no `Kernel`."""

    step: StepName
    keys: tuple[tuple[str, ...], ...]
    required: tuple[bool, ...]
    columns: Mapping[str, tuple[tuple[int, str], ...]]

    def apply(self, blocks: Sequence[Block], task: Task) -> Block:
        """The joined tuples; `blocks` holds all tuples of the partition, a block a stream."""
        with task.at(self.step):
            tables = [_table(block, key) for block, key in zip(blocks, self.keys, strict=True)]
        picks = [*self._matches(tables), *self._unmatched(tables)]
        if not picks:
            return NOTHING
        chosen = list(zip(*picks, strict=True))
        columns = {name: _taken(blocks, chosen, of) for name, of in self.columns.items()}
        return Block(columns, len(picks))

    def _matches(self, tables: Sequence[_Table]) -> Iterator[Pick]:
        absent = (None,)
        for key in self._keys_of(tables):
            yield from product(*(table.of_key.get(key, absent) for table in tables))

    def _keys_of(self, tables: Sequence[_Table]) -> Iterator[Hashable]:
        """The keys that make tuples: those of all required streams, or any if none is required."""
        needed = [table.of_key for table, due in zip(tables, self.required, strict=True) if due]
        if not needed:
            return iter(dict.fromkeys(chain.from_iterable(table.of_key for table in tables)))
        first, *others = needed
        return (key for key in first if all(key in other for other in others))

    def _unmatched(self, tables: Sequence[_Table]) -> Iterator[Pick]:
        """The tuples with a null in their key: null equals nothing."""
        for place, table in enumerate(tables):
            if not any(self.required[:place] + self.required[place + 1 :]):
                before, after = (None,) * place, (None,) * (len(tables) - place - 1)
                for position in table.without:
                    yield (*before, position, *after)


def _table(block: Block, key: Sequence[str]) -> _Table:
    of_key: dict[Hashable, list[int]] = {}
    without: list[int] = []
    if any(NoneType in set(map(type, block.values(name))) for name in key):
        hollow = [None in values for values in block.tuples(key)]
    else:
        hollow = [False] * block.length
    for position, (value, is_hollow) in enumerate(zip(group_keys(block, key), hollow, strict=True)):
        (without if is_hollow else of_key.setdefault(value, [])).append(position)
    return _Table(of_key, without)


def _taken(
    blocks: Sequence[Block], chosen: Sequence[Sequence[int | None]], of: Sequence[tuple[int, str]]
) -> list[Any]:
    """An output column."""
    (place, name), *others = of
    positions, values = chosen[place], blocks[place].values(name)
    if None not in set(positions):
        return [values[position] for position in positions]  # type: ignore[index]
    rest = _taken(blocks, chosen, others) if others else [None] * len(positions)
    return [
        other if position is None else values[position]
        for position, other in zip(positions, rest, strict=True)
    ]
