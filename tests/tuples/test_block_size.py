"""How many bytes a block is taken for."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from trident.tuples.block import NOTHING, Block


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda count: [f"word {number}" for number in range(count)],
        lambda count: [number + 0.5 for number in range(count)],
        lambda count: [(number + 1000, "ü" * 50 + str(number)) for number in range(count)],
        lambda count: [[f"word {number}"] * 3 for number in range(count)],
        lambda count: [{f"key {number}": f"value {number}"} for number in range(count)],
    ],
    ids=["strings", "floats", "tuples", "lists", "dicts"],
)
def test_it_is_about_what_python_takes(make: Callable[[int], Sequence[Any]]) -> None:
    tracemalloc.start()
    block = Block({"value": make(20_000)}, 20_000)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / 2 < block.nbytes < 3 * taken


def test_it_is_little_work_for_many_tuples() -> None:
    looked_at = 0

    class Value:
        def __sizeof__(self) -> int:
            nonlocal looked_at
            looked_at += 1
            return 84

    block = Block({"a": [Value()] * 1_000_000, "b": [Value()] * 1_000_000}, 1_000_000)
    assert block.nbytes >= 2 * 84_000_000
    assert looked_at <= 200


def test_nothing_takes_no_bytes() -> None:
    assert NOTHING.nbytes == Block({"a": []}, 0).nbytes == 0
