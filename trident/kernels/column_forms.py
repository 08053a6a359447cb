"""The library's own operations over whole columns.

A subclass has no column form, as it may do something else. A form gives None where nulls, other
types or large numbers need a closer look; the operation is then called tuple by tuple, so that an
error names the tuple that is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from itertools import chain, repeat
from operator import eq, is_not, not_
from types import ModuleType
from typing import Any

from trident.operations.builtin import (
    Count,
    Equals,
    FilterNull,
    MapGet,
    Max,
    Min,
    Negate,
    SnapshotGet,
    Split,
    Sum,
)
from trident.tuples.block import Block

_LONG_MAX = 2**63 - 1
_NULL = type(None)

_SURE_TYPES: Mapping[type, str] = {Split: "string", Count: "long"}

Totals = dict[Hashable, Any]


def arrow_forms(block: Block) -> ModuleType | None:
    """The same operations over Arrow columns; None for a block that stays in lists."""
    return _arrow_forms() if block.suits_arrow else None


@cache
def _arrow_forms() -> ModuleType:
    from trident.kernels import arrow_forms  # where Arrow is installed

    return arrow_forms


def expanded(
    function: object,
    block: Block,
    names: Sequence[str],
    carried: Sequence[str],
    outputs: Sequence[str],
) -> Block | None:
    """The `carried` fields with what a function makes of each tuple."""
    if type(function) is not Split or len(names) != 1:
        return None
    [output] = outputs
    forms = arrow_forms(block)
    made = None if forms is None else forms.words(block, names[0])
    if made is not None:
        words, places = made
        if not carried:
            return Block({}, len(words), {output: words})
        return block.taken(places, carried).added({}, {output: words})
    texts = block.values(names[0])
    if not set(map(type, texts)) <= {str, _NULL}:
        return None
    lists = [text.split() if text else () for text in texts]
    items = list(chain.from_iterable(lists))
    if not carried:
        return Block({output: items}, len(items))
    return block.repeated(list(map(len, lists)), carried).added({output: items})


def mask(filter: object, block: Block, names: Sequence[str]) -> list[bool] | None:
    """Whether a filter keeps each tuple."""
    if type(filter) is Negate:
        dropped = mask(filter.filter, block, names)
        return None if dropped is None else list(map(not_, dropped))
    columns = list(map(block.values, names))
    if type(filter) is FilterNull:
        present = [list(map(is_not, column, repeat(None))) for column in columns]
        if len(present) == 1:
            return present[0]
        return list(map(all, zip(*present, strict=True))) if present else [True] * block.length
    if type(filter) is Equals and len(columns) == 2:
        a, b = columns
        if set(map(type, a)) | set(map(type, b)) <= {str, int, bool, float, bytes, _NULL}:
            return list(map(eq, a, b))
    return None


def sure_type(operation: object) -> str | None:
    """The type of every value that an operation makes, which needs no check; None if unknown."""
    return _SURE_TYPES.get(type(operation))


def no_totals(combiner: object) -> Totals:
    """The totals of no tuple, which `take_in` adds to."""
    return Counter() if type(combiner) is Count else {}


def emits_results(query: object) -> bool:
    """Whether a query only emits the value that it has retrieved for a tuple."""
    return type(query) in (MapGet, SnapshotGet)


def take_in(
    combiner: object,
    totals: Totals,
    keys: Sequence[Hashable],
    block: Block,
    names: Sequence[str],
) -> bool:
    """Combine tuples into the totals of their groups; return False, and change nothing, where that
    needs a call for each tuple."""
    if isinstance(totals, Counter):
        totals.update(keys)
        return True
    fold = _FOLDS.get(type(combiner))
    # What was there already may be of another type, or make sums too large.
    made = None if fold is None or totals else fold(keys, block.values(names[0]))
    if made is None:
        return False
    totals.update(made)
    return True


def _sums(keys: Sequence[Hashable], values: Sequence[Any]) -> Totals | None:
    kinds = set(map(type, values))
    if kinds == {int}:
        # Below this bound no sum of some of the values has more than 64 bits.
        if max(max(values), -min(values)) * len(values) > _LONG_MAX:
            return None
    elif kinds != {float}:
        return None
    found: Totals = {}
    for key, value in zip(keys, values, strict=True):
        found[key] = found[key] + value if key in found else value + 0  # 0.0 for -0.0
    return found


def _least(keys: Sequence[Hashable], values: Sequence[Any]) -> Totals | None:
    if not _are_ordered(values):
        return None
    found: Totals = {}
    for key, value in zip(keys, values, strict=True):
        if key not in found or value < found[key]:
            found[key] = value
    return found


def _greatest(keys: Sequence[Hashable], values: Sequence[Any]) -> Totals | None:
    if not _are_ordered(values):
        return None
    found: Totals = {}
    for key, value in zip(keys, values, strict=True):
        if key not in found or value > found[key]:
            found[key] = value
    return found


def _are_ordered(values: Sequence[Any]) -> bool:
    """Whether Python orders the values as the operation does: there is no null and no NaN."""
    return set(map(type, values)) in ({int}, {str}, {bytes})


_FOLDS: Mapping[type, Callable[[Sequence[Hashable], Sequence[Any]], Totals | None]] = {
    Sum: _sums,
    Min: _least,
    Max: _greatest,
}
