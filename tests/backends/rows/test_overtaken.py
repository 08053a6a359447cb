"""A driver that stands still, and is overtaken, takes nothing from the one that goes on."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.backends.rows.databases import Place
from trident.backends.rows import RowsState
from trident.backends.rows.catalog import staging_name
from trident.states.control import ControlRecord, prepare_all
from trident.states.errors import StateUnavailableError
from trident.states.values import Token


def test_what_another_driver_has_staged_outlives_a_driver_that_makes_its_staging_table_late(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> RowsState:
        return place.rows("id").of({"id": "long"}).makeState()

    opened().control.create(ControlRecord("log", Token(0, 0)))
    place.execute(f"DROP TABLE {staging_name(place.table)}")
    late, other = opened(), opened()
    ready: list[ControlRecord] = []
    making = late._store._make_staging

    def stand_still(begun: bytes) -> bool:
        record = ControlRecord("log", Token(1, 1))
        other.control.begin(record)
        other.append(pa.RecordBatch.from_pydict({"id": [7]}))
        other.commit(record)
        ready.append(other.control.ready(record))
        return making(begun)

    monkeypatch.setattr(late._store, "_make_staging", stand_still)
    with pytest.raises(StateUnavailableError):
        late.control.begin(ControlRecord("log", Token(1, 0)))
    assert other.control.announce(ready[0])
    assert place.found() == [(7,)]


@pytest.mark.parametrize("place", ["postgres", "mariadb"], indirect=True)
def test_a_driver_that_stands_still_with_its_merge_keeps_the_next_one_waiting_not_out(
    place: Place,
) -> None:
    mark = "&" if "?" in place.url else "?"
    hasty = Place(f"{place.url}{mark}timeout=2", place.table)
    late, other = (hasty.rows("id").of({"id": "long"}).makeState() for _ in range(2))
    record = ControlRecord("log", Token(1, 0))
    late.control.create(ControlRecord("log", Token(0, 0)))
    late.control.begin(record)
    late.append(pa.RecordBatch.from_pydict({"id": [7]}))
    late.commit(record)
    ready = late.control.ready(record)
    [held] = prepare_all([late.control], ready)
    other.control.announce(ready)
    assert place.found() == [(7,)]
    with pytest.raises(StateUnavailableError):
        held.announce()
    late.control.announce(ready)
    assert place.found() == [(7,)]
