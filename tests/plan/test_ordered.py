"""Sorting by values that have no order is refused where it is declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trident import FeederBatchSpout, FirstN, TridentTopology
from trident.api.stream import Stream
from trident.errors import FieldError

CALLS: dict[str, Callable[[Stream], Any]] = {
    "minBy": lambda stream: stream.minBy("v"),
    "maxBy": lambda stream: stream.maxBy("v"),
    "FirstN": lambda stream: stream.applyAssembly(FirstN(2, "v")),
}


@pytest.mark.parametrize("kind", ["map<string,long>", "struct<a:long>", "array<long>"])
@pytest.mark.parametrize("call", CALLS)
def test_values_without_an_order_are_refused(call: str, kind: str) -> None:
    stream = TridentTopology().newStream("s", FeederBatchSpout(f"v {kind}"))
    with pytest.raises(FieldError, match=f"{call}: values of type {kind} have no order.*'v'"):
        CALLS[call](stream)


def test_a_comparator_may_put_them_in_order() -> None:
    stream = TridentTopology().newStream("s", FeederBatchSpout("v array<long>"))
    stream.minBy("v", lambda a, b: len(a) - len(b))
    stream.applyAssembly(FirstN(2))
