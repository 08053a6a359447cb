"""Every backend of the table, bare and under its caches, passes the suite on its real server."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.backends_table import BACKENDS, Backend
from trident.states import CachedMap, IBackingMap, LayeredMap, StateType
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


class CachedConformance(BackendConformance):
    """The same under a cache, which has to be the only writer."""

    shared = False

    def layers(self, backing: IBackingMap) -> LayeredMap:
        return CachedMap(backing, 100)


def vars_of(row: Backend) -> dict[str, Any]:
    return {"backend": row, "abilities": row.abilities, "values": row.values}


def suite(name: str, kind: type[BackendConformance], row: Backend) -> None:
    globals()[name] = type(name, (kind,), vars_of(row))


for row in BACKENDS:
    suite(f"Test{row.words}", BackendConformance, row)
    if row.cached:
        suite(f"TestCached{row.words}", CachedConformance, row)
