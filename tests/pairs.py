"""Which combinations of its parameters a test marked `pairs` has on Spark.

What goes wrong by parameters mostly does by one of them or by two together. The local engine has
all combinations, in which the same layers run; Spark as few as have each pair of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

import pytest


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """What is not run of these tests, each function by itself."""
    functions: dict[str, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("pairs") and item.get_closest_marker("spark"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {item for found in functions.values() for item in {*found} - {*_covering(found)}}


def _covering(items: list[Any]) -> Iterator[Any]:
    """The test with the most pairs that no earlier one has, until all are there."""
    pairs = {item: _pairs(item.callspec.params) for item in items}
    missing = set[Any]().union(*pairs.values())
    while missing:
        most = max(items, key=lambda item: len(missing & pairs[item]))
        missing -= pairs[most]
        yield most


def _pairs(parameters: Mapping[str, Any]) -> set[Any]:
    return {*combinations(sorted((name, id(value)) for name, value in parameters.items()), 2)}
