"""Several states of one store are asked before any is waited for: each finds its own."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tests.backends_table import BACKENDS, Backend
from trident.states.asking import wait_for
from trident.states.maps.reading import read_committed
from trident.states.maps.stored_map import read_each


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

        def ask(views: list[Any]) -> list[Any]:
            return wait_for([view.ask(asked) for view in views])

        asked = [*keys[:50], ("nobody",), *keys, keys[0]]
        found = read_each(states, ask)
        assert found == [state.multiGet(asked) for state in states]
        assert all(sum(value is not None for value in each) >= 1_000 for each in found)

        assert read_committed([("one group", state) for state in states], ask) == found
