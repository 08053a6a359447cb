"""What may change of a table's writer between two starts, and what a log remembers of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from tests.backends.rows.databases import Place
from trident import Adopt, FixedBatchSpout, Rows, TridentTopology
from trident.backends.rows.urls import database_from_url
from trident.batch.watchpoints import watching
from trident.log.errors import AdoptionError, ChangedTopologyError
from trident.states.control import ControlRecord
from trident.states.errors import CorruptStateError, StateError
from trident.states.values import Token
from trident.testing import fail_at


def write(
    rows: Rows,
    checkpoint: Path,
    *given: tuple[Any, ...],
    fields: str = "id long, n long",
    **start: Any,
) -> None:
    """Write rows, one a batch; a later start has those of the earlier ones before its own."""
    topology = TridentTopology()
    stream = topology.newStream("rows", FixedBatchSpout(fields, 1, *given))
    stream.partitionPersist(rows, name="table")
    with topology.start(checkpoint=checkpoint, trigger="available", **start) as run:
        run.awaitTermination()


@pytest.mark.parametrize("change", ["mode", "key", "table"])
def test_another_mode_key_or_table_is_refused_unless_it_is_accepted(
    place: Place, tmp_path: Path, change: str
) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT UNIQUE)")
    place.beside("other").execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    one = {"name": f"{place.table} rows", "key": "id"}
    changed = {"mode": {**one, "mode": "add"}, "key": {**one, "key": "n"}, "table": one}
    other = (place.beside("other") if change == "table" else place).rows(**changed[change])
    write(place.rows(**one), tmp_path / "log", (1, 10))
    with pytest.raises(ChangedTopologyError) as raised:
        write(other, tmp_path / "log", (1, 10), (2, 20))
    assert f"Rows({place.table}, upsert by id)" in str(raised.value)
    assert str(other.target) in str(raised.value)
    assert place.found() == [(1, 10)]
    accept = {"table": str(other.target)}
    write(other, tmp_path / "log", (1, 10), (2, 20), accept_change=accept)
    both = {*place.found(), *(place.beside("other").found() if change == "table" else ())}
    assert both == {(1, 10), (2, 20)}


def test_a_column_may_be_new_in_the_stream_and_in_the_table(place: Place, tmp_path: Path) -> None:
    rows = place.rows("id")
    write(rows, tmp_path / "log", (1, 10))
    place.execute("ALTER TABLE {table} ADD COLUMN note VARCHAR(9)")
    more, now = [(1, 10, None), (2, 20, "new")], "id long, n long, note string"
    accept = {"rows": f"FixedBatchSpout of {now}"}
    with pytest.raises(ChangedTopologyError, match="note string"):
        write(rows, tmp_path / "log", *more, fields=now)
    write(rows, tmp_path / "log", *more, fields=now, accept_change=accept)
    assert place.found() == [(1, 10, None), (2, 20, "new")]


def test_a_changed_writer_drops_its_old_staging_table_once_it_has_begun(
    place: Place, tmp_path: Path
) -> None:
    def staging_tables() -> list[str]:
        with database_from_url(place.url).engine.connect() as connection:
            names = sqlalchemy.inspect(connection).get_table_names()
        return [name for name in names if name.startswith(f"trident_{place.table}_")]

    def crash(point: str, token: Token) -> None:
        if point == "after commit":
            seen.append(len(staging_tables()))
            raise KeyboardInterrupt

    seen: list[int] = []
    with watching(crash), pytest.raises(KeyboardInterrupt):
        write(place.rows("id"), tmp_path / "log", (1, 10))
    place.execute("ALTER TABLE {table} ADD COLUMN note VARCHAR(9)")
    more, now = [(1, 10, None), (2, 20, "new")], "id long, n long, note string"
    accept = {"rows": f"FixedBatchSpout of {now}"}
    write(place.rows("id"), tmp_path / "log", *more, fields=now, accept_change=accept)
    assert place.found() == [(1, 10, None), (2, 20, "new")]
    assert seen == [1]
    assert staging_tables() == [place.staging]


def test_a_table_that_changes_while_it_is_written_is_not_waited_for(
    place: Place, tmp_path: Path
) -> None:
    def change(point: str, token: Token) -> None:
        if point == "before ready":
            place.execute("ALTER TABLE {table} RENAME COLUMN n TO m")

    with watching(change), pytest.raises(StateError, match=r"Was a table changed, or dropped\?"):
        write(place.rows("id"), tmp_path / "log", (1, 10))


def test_a_log_forgets_retried_batches_of_rows(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trident.batch.runner.MOST_RETRIED", 1)
    with fail_at("after write", 2):
        write(place.rows(), tmp_path / "log", *[(n, n) for n in range(5)])
    with database_from_url(place.url).transaction() as connection:
        told = connection.exec_driver_sql(
            f"SELECT control FROM trident_rows WHERE name = '{place.table}'"
        ).scalar_one()
    found = ControlRecord.decode(bytes(told))
    assert (found.committed, found.retried) == (5, {})
    assert place.column("id") == [0, 1, 2, 3, 4]


def test_a_renamed_state_adopts_no_log_of_which_a_batch_waits_for_its_old_name(
    place: Place, tmp_path: Path
) -> None:
    def start(log: str, *given: tuple[Any, ...], name: str, **options: Any) -> None:
        topology = TridentTopology()
        stream = topology.newStream("rows", FixedBatchSpout("id long", 1, *given))
        stream.partitionPersist(place.rows("id", name=name))
        with topology.start(checkpoint=tmp_path / log, trigger="available", **options) as run:
            run.awaitTermination()

    def crash(point: str, token: Token) -> None:
        if (point, token.txid) == ("after commit", 2):
            raise KeyboardInterrupt

    old, renamed = f"{place.table} old", f"{place.table} renamed"
    adopt = Adopt.from_checkpoint(tmp_path / "old")
    with watching(crash), pytest.raises(KeyboardInterrupt):
        start("old", (1,), (2,), name=old)
    with pytest.raises(AdoptionError, match=f"batch 2 ended before it merged .* of '{old}'"):
        start("new", (1,), (2,), (3,), name=renamed, adopt=adopt)
    assert place.column("id") == [1]
    start("old", (1,), (2,), name=old)
    start("new", (1,), (2,), (3,), name=renamed, adopt=adopt)
    assert place.column("id") == [1, 2, 3]


def test_a_catalog_that_holds_something_else_is_told_as_damage(
    place: Place, tmp_path: Path
) -> None:
    def crash(point: str, token: Token) -> None:
        if point == "after commit":
            raise KeyboardInterrupt

    with watching(crash), pytest.raises(KeyboardInterrupt):
        write(place.rows("id"), tmp_path / "log", (1, 10))
    place.execute("UPDATE trident_rows SET parts = '[1]' WHERE name = '{table}'")
    with pytest.raises(CorruptStateError, match=r"parts of \w+ in the table trident_rows"):
        write(place.rows("id"), tmp_path / "log", (1, 10))
