"""Every backend of the table passes the suite on its real server."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tests.backends_table import BACKENDS, Backend
from trident.states import IBackingMap, StateType
from trident.states.testing.suite import BackingMapConformance


class BackendConformance(BackingMapConformance):
    """The suite on a row of the table."""

    backend: ClassVar[Backend]
    server: str

    @pytest.fixture(autouse=True)
    def running(self, request: pytest.FixtureRequest) -> None:
        self.server = request.getfixturevalue(self.backend.fixture).url

    def make_map(self) -> IBackingMap:
        return self.make_map_of(StateType.OPAQUE)

    def make_map_of(self, kind: StateType) -> IBackingMap:
        return self.backend.open(self.server, kind)

    def test_the_class_of_the_map_is_known_before_it_is_opened(self) -> None:
        factory = self.backend.factory(self.server)
        opened = factory.store.open()
        assert factory.map_type is type(opened)
        opened.close()


for row in BACKENDS:
    if row.variant_of is None:
        said = {"abilities": row.abilities, "values": row.values, "runs": row.runs}
        members = {"backend": row, **said}
        name = f"Test{row.words}"
        globals()[name] = type(name, (BackendConformance,), members)
