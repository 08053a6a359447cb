"""The embedded store passes the conformance suite, whatever kind of values it keeps."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from trident.backends.sqlite import SQLiteStore
from trident.states import Ability, IBackingMap, StateType
from trident.states.testing.suite import BackingMapConformance

_NUMBERS = count()


class TestSQLiteMap(BackingMapConformance):
    abilities = frozenset(
        {Ability.FENCED, Ability.REMOVE, Ability.ADD, Ability.SNAPSHOT, Ability.LIST}
    )
    folder: Path

    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_map(self) -> IBackingMap:
        return self.make_map_of(StateType.OPAQUE)

    def make_map_of(self, kind: StateType) -> IBackingMap:
        return SQLiteStore(str(self.folder / f"{next(_NUMBERS)}.db"), kind=kind).open()
