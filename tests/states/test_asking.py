"""Reads that are asked for first: a plain call that somebody has replaced is made, all the same."""

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
from trident.states.asking import Reading, Wait, begin_read, finish_read, wait_for
from trident.states.control import ControlRecord
from trident.states.maps.reading import read_committed
from trident.states.maps.stored_map import read_each
from trident.states.table.named_keys import NamedKeysMap
from trident.states.values import Token


class Remote(MemoryMap):
    """A store over a network: it is asked, and answers later."""

    def __init__(self, told: list[str] | None = None) -> None:
        super().__init__(uuid4().hex)
        self.told: list[str] = [] if told is None else told

    def multiGet(self, keys: Sequence[bytes]) -> Sequence[Any]:
        return finish_read(self._read(keys))

    def ask(self, keys: Sequence[bytes]) -> Wait[Sequence[Any]]:
        return begin_read(self._read(keys))

    def _read(self, keys: Sequence[bytes]) -> Reading[Sequence[Any]]:
        self.told.append("asked")
        yield
        self.told.append("waited")
        return super().multiGet(keys)

    def getControl(self) -> bytes | None:
        return finish_read(self._read_control())

    def askControl(self) -> Wait[bytes | None]:
        return begin_read(self._read_control())

    def _read_control(self) -> Reading[bytes | None]:
        self.told.append("asked for the record")
        yield
        self.told.append("waited for the record")
        return super().getControl()


class Upper(Remote):
    """Knows only the plain call."""

    def multiGet(self, keys: Sequence[bytes]) -> Sequence[Any]:
        return super().multiGet([key.upper() for key in keys])


class Doubled(OpaqueMap):
    """Knows only the plain call, too."""

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


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda store: store,
        lambda store: MicroBatchMap(store, max_get=100),
        lambda store: NamedKeysMap(store, lambda key: key[0]),
        WrappedMap,
    ],
    ids=["plain", "a layer", "named keys", "a wrapper"],
)
@pytest.mark.parametrize("kind", [OpaqueMap, NonTransactionalMap])
def test_several_states_are_asked_before_any_is_waited_for(kind: Any, wrapped: Any) -> None:
    told: list[str] = []
    states = [begun(kind(wrapped(Remote(told))), {"dog": number}) for number in (1, 2)]
    told.clear()

    def ask(views: list[Any]) -> list[Any]:
        return wait_for([view.ask([("dog",), ("cat",)]) for view in views])

    assert read_each(states, ask) == [[1, None], [2, None]]
    entries = ["asked", "asked", "waited", "waited"]
    records = [f"{each} for the record" for each in entries]
    opaque = kind is OpaqueMap
    assert told == [*records, *entries, *(records * opaque)]


def test_a_plain_call_that_a_subclass_replaces_is_made() -> None:
    store = Upper()
    store.multiPut([b"A"], [b"1"])
    assert wait_for([store.ask([b"a"]), store.ask([b"b"])]) == [[b"1"], [None]]
    states = [begun(Doubled(Remote()), {"dog": 5}) for _ in range(2)]
    assert wait_for([state.ask([("dog",)]) for state in states]) == [[10], [10]]
    found = read_each(states, lambda views: wait_for([view.ask([("dog",)]) for view in views]))
    assert found == [[10], [10]]


def test_so_is_that_of_a_view_of_ones_own() -> None:
    class View(ReadOnlyState, ReadOnlyMapState):
        def multiGet(self, keys: Any) -> list[Any]:
            return ["mine"] * len(list(keys))

    assert View().ask([("dog",)])() == ["mine"]


def test_so_is_that_for_the_control_record() -> None:
    class Watched(WrappedMap):
        def getControl(self) -> bytes | None:
            asked_for.append(self)
            return self.inner.getControl()

    asked_for: list[WrappedMap] = []
    states = [begun(OpaqueMap(Watched(Remote())), {}) for _ in range(2)]
    asked_for.clear()
    read_committed([("g", state) for state in states], lambda views: None)
    assert {id(each) for each in asked_for} == {id(state.backing) for state in states}


def test_where_one_read_fails_the_others_are_given_up() -> None:
    ended = []

    def read(name: str) -> Reading[str]:
        try:
            yield
            if name == "broken":
                raise ValueError(name)
            yield
            return name
        finally:
            ended.append(name)

    with pytest.raises(ValueError, match="broken"):
        wait_for([begin_read(read(name)) for name in ("first", "broken", "last")])
    assert sorted(ended) == ["broken", "first", "last"]


def test_a_wrapper_that_knows_the_plain_call_only_is_not_passed_by() -> None:
    class Reversed(WrappedMap):
        def multiGet(self, keys: Sequence[Any]) -> Sequence[Any]:
            return super().multiGet([key[::-1] for key in keys])

    inner = Remote()
    inner.multiPut([b"god"], [b"1"])
    assert Reversed(inner).ask([b"dog"])() == [b"1"]
