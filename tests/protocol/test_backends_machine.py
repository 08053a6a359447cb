"""The protocol's misfortunes on every backend of the table, on its real server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.backends_table import BACKENDS, Backend
from tests.protocol import broken
from trident.errors import StateError
from trident.states import IBackingMap, TransactionalMap
from trident.states.testing.backend_machine import BackendMachine
from trident.states.testing.stores import FencedMap

SETTINGS = settings(
    stateful_step_count=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
# It stores texts.
ROWS = [row for row in BACKENDS if row.values is None and row.variant_of is None]


class TableMachine(BackendMachine):
    """The machine on a row of the table."""

    backend: Backend
    url: str

    def make_map(self) -> IBackingMap:
        return self.backend.open(self.url, self.state.kept_as.type)


def run(
    machine: type[TableMachine], row: Backend, request: pytest.FixtureRequest, **replaced: Any
) -> None:
    server = request.getfixturevalue(row.fixture)
    own = type(machine.__name__, (machine,), {"backend": row, "url": server.url, **replaced})
    run_state_machine_as_test(own, settings=settings(SETTINGS, max_examples=row.runs))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_states_hold_what_was_committed(row: Backend, request: pytest.FixtureRequest) -> None:
    run(TableMachine, row, request)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_transactional_states_do(row: Backend, request: pytest.FixtureRequest) -> None:
    run(TableMachine, row, request, state=TransactionalMap)


def test_a_backend_that_ignores_the_fence_shows() -> None:
    class Unfenced(BackendMachine):
        def make_map(self) -> FencedMap:
            return broken.UnfencedMap()

    search = settings(SETTINGS, max_examples=300, phases=[Phase.generate])
    with pytest.raises((AssertionError, StateError)):
        run_state_machine_as_test(Unfenced, settings=search)
