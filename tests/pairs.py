"""Which combinations of its parameters a test marked `pairs` or `singles` has on Spark.

What goes wrong by parameters mostly does by one of them or by two together. The local engine has
all combinations, in which the same layers run; Spark as few as have each pair of values, or, where
the engine treats one parameter as it does whatever the others are, each value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

import pytest

SIZES = {"pairs": 2, "singles": 1}
"""How many values together the tests with a mark have on Spark."""


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """What is not run of these tests, each function by itself."""
    functions: dict[tuple[str, int], list[Any]] = {}
    for item in items:
        for mark, size in SIZES.items():
            if item.get_closest_marker(mark) and item.get_closest_marker("spark"):
                functions.setdefault((item.nodeid.partition("[")[0], size), []).append(item)
    return {
        item
        for (_, size), found in functions.items()
        for item in {*found} - {*_covering(found, size)}
    }


def _covering(items: list[Any], size: int) -> Iterator[Any]:
    """The test with the most values together that no earlier one has, until all are there.

    Of several it is the one whose values were had least often.
    """
    values = {item: _values(item.callspec.params, size) for item in items}
    missing = set[Any]().union(*values.values())
    had = Counter[Any]()
    while missing:
        most = max(items, key=lambda item: (len(missing & values[item]), -_sum(had, values[item])))
        missing -= values[most]
        had.update(values[most])
        yield most


def _sum(had: Counter[Any], values: Iterable[Any]) -> int:
    return sum(had[value] for value in values)


def _values(parameters: Mapping[str, Any], size: int) -> set[Any]:
    return {*combinations(sorted((name, id(value)) for name, value in parameters.items()), size)}
