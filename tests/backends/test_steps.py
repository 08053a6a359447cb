"""Reads in steps, of several states in one store: each finds what is its own."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tests.backends_table import BACKENDS, Backend
from trident.states.reading import read_committed
from trident.states.steps import together


@pytest.mark.parametrize("row", BACKENDS, ids=lambda row: row.name)
def test_several_states_of_a_store_are_read_by_turns(
    row: Backend, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(row.fixture).url
    keys = [(f"key {number}",) for number in range(3_000)]
    with ExitStack() as closing:
        states: list[Any] = []
        for number in range(3):
            state: Any = row.factory(server).makeState()
            closing.callback(state.close)
            state.beginCommit(1)
            own = keys[number::3]
            state.multiPut(own, [number + 10 * place for place in range(len(own))])
            state.commit(1)
            states.append(state)
        asked = [*keys[:50], ("nobody",), *keys, keys[0]]
        found = together([state.read_steps(asked) for state in states])
        assert found == [state.multiGet(asked) for state in states]
        assert all(sum(value is not None for value in each) >= 1_000 for each in found)

        def ask(views: list[Any]) -> list[Any]:
            return together([view.read_steps(asked) for view in views])

        assert read_committed([("one group", state) for state in states], ask) == found
