"""Reads in steps: a plain call that somebody has replaced is made, a failed read ends the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest

from trident.backends.memory import MemoryMap
from trident.states import (
    MicroBatchMap,
    NonTransactionalMap,
    OpaqueMap,
    ReadOnlyMapState,
    ReadOnlyState,
    WrappedMap,
)
from trident.states.control import ControlRecord
from trident.states.named_keys import NamedKeysMap
from trident.states.reading import read_committed
from trident.states.steps import Steps, entries_of, finished, together
from trident.states.values import Token


class Stepwise(MemoryMap):
    """A store over a network: it is asked, and answers later."""

    def __init__(self) -> None:
        super().__init__(uuid4().hex)

    def multiGet(self, keys: Sequence[bytes]) -> list[Any]:
        return finished(self.read_steps(keys))

    def read_steps(self, keys: Sequence[bytes]) -> Steps[list[Any]]:
        yield
        return super().multiGet(keys)

    def getControl(self) -> bytes | None:
        return finished(self.control_steps())

    def control_steps(self) -> Steps[bytes | None]:
        yield
        return super().getControl()


class Upper(Stepwise):
    """Knows nothing of steps."""

    def multiGet(self, keys: Sequence[bytes]) -> list[Any]:
        return super().multiGet([key.upper() for key in keys])


class Doubled(OpaqueMap):
    """Knows nothing of steps either."""

    def multiGet(self, keys: Any) -> list[Any]:
        return [value and 2 * value for value in super().multiGet(keys)]


def begun(state: Any, entries: dict[str, int]) -> Any:
    record = ControlRecord("log", Token(1, 0))
    state.control.begin(record)
    state.beginCommit(record)
    state.multiPut([(key,) for key in entries], list(entries.values()))
    state.commit(record)
    state.control.announce(state.control.ready(record))
    return state


def steps_of(reads: Steps[Any]) -> int:
    return sum(1 for _ in reads)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda store: store,
        lambda store: MicroBatchMap(store, max_get=100),
        lambda store: NamedKeysMap(store, lambda key: key[0]),
    ],
    ids=["plain", "a layer", "named keys"],
)
@pytest.mark.parametrize("kind", [OpaqueMap, NonTransactionalMap])
def test_a_state_over_a_store_that_reads_in_steps_does_so_too(kind: Any, wrapped: Any) -> None:
    state = begun(kind(wrapped(Stepwise())), {"dog": 1})
    assert steps_of(state.read_steps([("dog",)])) >= 1 + (kind is OpaqueMap)
    assert finished(state.read_steps([("dog",), ("cat",)])) == [1, None]


def test_a_plain_call_that_a_subclass_replaces_is_made() -> None:
    store = Upper()
    store.multiPut([b"A"], [b"1"])
    assert together([entries_of(store, [b"a"]), entries_of(store, [b"b"])]) == [[b"1"], [None]]
    states = [begun(Doubled(Stepwise()), {"dog": 5}) for _ in range(2)]
    assert together([entries_of(state, [("dog",)]) for state in states]) == [[10], [10]]


def test_so_is_that_of_a_view_of_ones_own() -> None:
    class View(ReadOnlyState, ReadOnlyMapState):
        def multiGet(self, keys: Any) -> list[Any]:
            return ["mine"] * len(list(keys))

    class Shown(OpaqueMap):
        def committed(self, cut: Any) -> Any:
            return View()

    state = begun(Shown(Stepwise()), {"dog": 5})
    assert finished(entries_of(state, [("dog",)])) == state.multiGet([("dog",)]) == ["mine"]


def test_so_is_that_for_the_control_record() -> None:
    asked = []

    class Watched(MicroBatchMap):
        def getControl(self) -> bytes | None:
            asked.append(self)
            return super().getControl()

    states = [begun(OpaqueMap(Watched(Stepwise(), max_get=1)), {}) for _ in range(2)]
    asked.clear()
    read_committed([("g", state) for state in states], lambda views: None)
    assert {id(each) for each in asked} == {id(state.backing) for state in states}


def test_where_one_read_fails_the_others_are_closed() -> None:
    ended = []

    def read(name: str) -> Steps[str]:
        try:
            yield
            if name == "broken":
                raise ValueError(name)
            yield
            return name
        finally:
            ended.append(name)

    with pytest.raises(ValueError, match="broken"):
        together([read("first"), read("broken"), read("last")])
    assert sorted(ended) == ["broken", "first", "last"]


def test_a_wrapper_that_knows_nothing_of_steps_is_not_passed_by() -> None:
    class Reversed(WrappedMap):
        def multiGet(self, keys: Sequence[Any]) -> Sequence[Any]:
            return super().multiGet([key[::-1] for key in keys])

    inner = Stepwise()
    inner.multiPut([b"god"], [b"1"])
    assert finished(entries_of(Reversed(inner), [b"dog"])) == [b"1"]
