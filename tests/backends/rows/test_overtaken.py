"""A driver that stands still, and is overtaken, takes nothing from the one that goes on."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from sqlalchemy.exc import DBAPIError

from tests.backends.rows.databases import Place
from trident import GeneratorSpout, TridentTopology
from trident.states.control import ControlRecord, prepare_all
from trident.states.errors import StaleBatchError, StateUnavailableError
from trident.states.values import Token
from trident.testing.servers.promised import Served


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


@pytest.mark.parametrize("place", ["postgres", "mariadb"], indirect=True)
def test_a_task_that_still_writes_when_its_attempt_is_given_up_leaves_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, other = (place.rows().of({"id": "long"}).makeState() for _ in range(2))
    given_up, record = (ControlRecord("log", Token(1, attempt)) for attempt in (0, 1))
    late.control.create(ControlRecord("log", Token(0, 0)))
    late.control.begin(given_up)
    late.append(pa.RecordBatch.from_pydict({"id": [7]}))
    database = type(late._store._database)
    load = database.load

    def load_late(*given: Any) -> None:
        monkeypatch.setattr(database, "load", load)
        load(*given)
        other.control.begin(record)

    monkeypatch.setattr(database, "load", load_late)
    late.commit(given_up)
    with pytest.raises(StaleBatchError):
        late.stage(given_up)
    other.append(pa.RecordBatch.from_pydict({"id": [9]}))
    other.commit(record)
    other.control.announce(other.control.ready(record))
    assert place.found() == [(9,)]


@pytest.mark.parametrize("has_rows", [False, True])
def test_an_older_driver_whose_staging_table_was_dropped_is_overtaken(
    place: Place, has_rows: bool
) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, note VARCHAR(9))")
    late = place.rows("id").of({"id": "long"}).makeState()
    late.control.create(ControlRecord("log", Token(0, 0)))
    given_up, record = (ControlRecord("log", Token(1, attempt)) for attempt in (0, 1))
    late.control.begin(given_up)
    staging = place.staging
    other = place.rows("id").of({"id": "long", "note": "string"}).makeState()
    other.control.begin(record)
    with pytest.raises(DBAPIError):
        place.query(f"SELECT * FROM {staging}")
    if has_rows:
        late.append(pa.RecordBatch.from_pydict({"id": [7]}))
        late.commit(given_up)
        with pytest.raises(StaleBatchError):
            late.stage(given_up)
    with pytest.raises(StaleBatchError):
        late.control.ready(given_up)
    other.control.announce(other.control.ready(record))
    assert place.found() == []


def test_writers_with_names_of_their_own_add_to_the_same_rows_at_once(
    place: Place, tmp_path: Path
) -> None:
    batches, keys = 10, 4
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    failed: list[BaseException] = []

    def add(name: str) -> None:
        topology = TridentTopology()
        total = batches * keys
        spout = GeneratorSpout("id long, n long", lambda n: (n % keys, 1), batch=keys, total=total)
        rows = place.rows("id", mode="add", name=f"{place.table} {name}")
        topology.newStream("ones", spout).partitionPersist(rows)
        try:
            with topology.start(checkpoint=tmp_path / name, trigger="available") as run:
                run.awaitTermination()
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=add, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert place.found() == [(key, 2 * batches) for key in range(keys)]


def test_a_staging_table_that_another_session_locks_is_left_with_a_warning(
    postgres_server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place.at(f"{postgres_server.url}?timeout=1")
    one = place.rows("id").of({"id": "long"}).makeState()
    one.control.create(ControlRecord("log", Token(0, 0)))
    one.control.begin(ControlRecord("log", Token(1, 0)))
    place.execute("ALTER TABLE {table} ADD COLUMN n bigint")
    old = place.staging
    with psycopg.connect(postgres_server.url) as other:
        other.execute(f"LOCK TABLE {old}")
        two = place.rows("id").of({"id": "long", "n": "long"}).makeState()
        two.control.begin(ControlRecord("log", Token(1, 1)))
    assert place.staging != old
    [warning] = [record.getMessage() for record in caplog.records]
    assert f"the table {old} is not needed any more, drop it" in warning


def test_a_second_start_uses_the_staging_table_of_the_one_that_has_made_the_table(
    place: Place,
) -> None:
    kinds = ["long", "int", "short", "string", "double", "float", "boolean", "binary", "date"]
    kinds += ["timestamp", "timestamp_ntz", "decimal(10,2)"]
    types = {f"c{n}": kind for n, kind in enumerate(kinds)}
    used = set()
    for attempt in range(2):
        state = place.rows("c0").of(types).makeState()
        if attempt == 0:
            state.control.create(ControlRecord("log", Token(0, 0)))
        state.control.begin(ControlRecord("log", Token(1, attempt)))
        used.add(place.staging)
    assert len(used) == 1
