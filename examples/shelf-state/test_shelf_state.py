"""The tests that every store has to pass, for this one."""

from itertools import count
from pathlib import Path

import pytest
from shelf_state import ShelfMap

from trident.backends import state_from_url
from trident.states import IBackingMap, MapStateFactory
from trident.states.testing.suite import BackingMapConformance

_NUMBERS = count()


class TestShelfMap(BackingMapConformance):
    folder: Path

    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_map(self) -> IBackingMap:
        return ShelfMap(str(self.folder / f"{next(_NUMBERS)}.shelf"))


def test_the_package_registers_its_scheme(tmp_path: Path) -> None:
    factory = state_from_url(f"shelf:{tmp_path}?prefix=words")
    assert isinstance(factory, MapStateFactory)
    assert factory.identity == ("shelf", str(tmp_path), "words")
