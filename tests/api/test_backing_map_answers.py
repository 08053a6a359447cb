"""What a user's map answers is checked: too few values, or text, are told as what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from trident.errors import BackingMapError
from trident.states import IBackingMap, OpaqueMap


class Answers(IBackingMap):
    """A map over a dict, whose answers for keys are spoilt."""

    def __init__(self, stored: dict[Any, Any], spoil: Callable[[list[Any]], Any]) -> None:
        self._stored = stored
        self._spoil = spoil

    def multiGet(self, keys: Sequence[Any]) -> Any:
        return self._spoil([self._stored.get(key) for key in keys])

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self._stored.update(zip(keys, values, strict=True))


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda found: [], "multiGet answered 0 values for 1 key. Return a list of one value"),
        (lambda found: found * 2, "answered 2 values for 1 key"),
        (lambda found: "x", "answered str 'x' for 1 key"),
        (lambda found: None, "answered NoneType None for 1 key"),
        (iter, "answered list_iterator"),
        (lambda found: ["x"], "answered str 'x' for 1 key"),
        (lambda found: [7], "answered int 7 for 1 key"),
    ],
)
def test_an_answer_for_the_control_record_is_a_value_for_each_key(spoil: Any, text: str) -> None:
    state = OpaqueMap(Answers({}, spoil))
    with pytest.raises(BackingMapError, match=text):
        state.beginCommit(1)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda found: found[:-1], "Answers: multiGet answered 1 value for 2 keys"),
        (lambda found: "xy", "Answers: multiGet answered str 'xy' for 2 keys"),
        (lambda found: ["[1,1,null]", None], "Answers: multiGet answered str '.1,1,null.'"),
    ],
)
def test_an_answer_for_entries_is_a_value_for_each_key(spoil: Any, text: str) -> None:
    def spoilt(found: list[Any]) -> Any:
        return found if len(found) == 1 else spoil(found)

    state = OpaqueMap(Answers({}, spoilt))
    state.beginCommit(1)
    with pytest.raises(BackingMapError, match=text):
        state.multiGet([("a",), ("b",)])
