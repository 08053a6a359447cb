"""A key that can be none of a state's is refused where it is looked up, and isn't just absent."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from trident import Count, FixedBatchSpout, TridentTopology
from trident.backends import state_from_url
from trident.errors import KeyTypeError
from trident.states import MapStateFactory


@pytest.fixture
def counted(tmp_path: Path) -> Callable[..., MapStateFactory]:
    """Makes a state in which a topology has counted some keys."""

    def count(fields: str, *keys: tuple[Any, ...]) -> MapStateFactory:
        url = f"sqlite:{tmp_path / 'states.db'}?prefix=count"
        topology = TridentTopology()
        names = [field.split()[0] for field in fields.split(", ")]
        stream = topology.newStream("keys", FixedBatchSpout(fields, 9, *keys))
        stream.groupBy(names).persistentAggregate(url, Count(), "count")
        with topology.start(checkpoint=tmp_path / "checkpoint") as run:
            run.processAllAvailable()
        return state_from_url(url)

    return count


def test_text_is_refused_for_whole_numbers(counted: Callable[..., MapStateFactory]) -> None:
    with closing(counted("id long", (1,), (2,), (1,)).makeState()) as state:
        assert state.multiGet([(1,), (3,)]) == [2, None]
        assert state.multiGet([(3,)]) == [None]
        named = r"states.db: the key \('1',\).*\(int\), as in \(1,\)"
        for _ in range(2):
            with pytest.raises(KeyTypeError, match=named):
                state.multiGet([("1",)])


@pytest.mark.parametrize("key", [(1.0,), (True,), (1, 1), (b"1",), ([1],), ()])
def test_keys_of_other_types_and_widths_are_refused(
    counted: Callable[..., MapStateFactory], key: tuple[Any, ...]
) -> None:
    with closing(counted("id long", (1,)).makeState()) as state, pytest.raises(KeyTypeError):
        state.multiGet([(7,), key])


def test_null_and_a_uuid_are_among_the_keys_that_may_be_absent(
    counted: Callable[..., MapStateFactory],
) -> None:
    made = counted("id string, n long", ("a", None), ("b", 5))
    with closing(made.makeState()) as state:
        assert state.multiGet([(None, 7), (UUID(int=1), 7), ("c", None)]) == [None] * 3
        with pytest.raises(KeyTypeError, match=r"fields are \(str, int\)"):
            state.multiGet([("a", "5")])


def test_the_single_value_may_be_asked_for(counted: Callable[..., MapStateFactory]) -> None:
    with closing(counted("id long", (1,)).makeState()) as state:
        assert state.get() is None


def test_a_state_that_is_filled_by_hand_may_have_keys_of_any_type(tmp_path: Path) -> None:
    factory = state_from_url(f"sqlite:{tmp_path / 'states.db'}?prefix=own")
    with closing(factory.makeState()) as state:
        state.beginCommit(1)
        state.multiPut([(1,)], ["one"])
        state.commit(1)
        assert state.multiGet([("1",)]) == [None]


def test_an_empty_state_refuses_nothing(counted: Callable[..., MapStateFactory]) -> None:
    with closing(counted("id long").makeState()) as state:
        assert state.multiGet([("1",)]) == [None]


def test_the_error_crosses_processes() -> None:
    error = KeyTypeError("count", "('1',)", "int", "(1,)")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
