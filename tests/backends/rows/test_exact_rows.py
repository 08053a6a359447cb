"""Rows are written once, whatever ends a run, and whatever other rows a batch comes back with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.rows.databases import Place
from trident import FixedBatchSpout, GeneratorSpout, Rows, TridentTopology
from trident.batch.watchpoints import POINTS, watching
from trident.errors import StaleBatchError
from trident.log.errors import LogConflictError, TakenOverError
from trident.states.values import Token

BATCHES, SIZE = 3, 4


class Ended(Exception):
    """Ends a run as a crash does."""


def run(place: Place, checkpoint: Path, salt: int) -> None:
    """Write numbers, to one table as they are and added up in another, marked with the run."""
    spout = GeneratorSpout(
        "n long, run long", lambda n: (n, salt), batch=SIZE, total=BATCHES * SIZE
    )
    topology = TridentTopology()
    numbers = topology.newStream("numbers", spout)
    numbers.partitionPersist(place.rows())
    numbers.partitionPersist(place.beside("sum").rows("n", mode="add", columns={"run": "runs"}))
    with topology.start(checkpoint=checkpoint, trigger="available") as started:
        started.awaitTermination()


@pytest.mark.parametrize("point", POINTS)
def test_a_batch_that_ends_anywhere_is_in_the_tables_once_and_whole(
    place: Place, tmp_path: Path, point: str
) -> None:
    seen: list[tuple[list[int], list[int]]] = []

    def look_and_end(reached: str, token: Token) -> None:
        if reached == point and token.txid == 2:
            seen.append((place.column("n"), place.beside("sum").column("n")))
            raise Ended
        return None

    with watching(look_and_end), pytest.raises(Ended):
        run(place, tmp_path / "log", salt=1)
    run(place, tmp_path / "log", salt=2)
    assert place.column("n") == place.beside("sum").column("n") == list(range(BATCHES * SIZE))
    committed = POINTS.index(point) > POINTS.index("before commit")
    runs = {salt: [n for n, marked in place.found("n, run") if marked == salt] for salt in (1, 2)}
    assert runs[1] == list(range(2 * SIZE if committed else SIZE))
    assert place.beside("sum").found() == place.found("n, run")
    [(rows, sums)] = seen
    assert rows == sums == list(range(2 * SIZE if point == "after announce" else SIZE))
    assert not place.left()


def end_after_commit(reached: str, token: Token) -> None:
    """End a run whose second batch is committed, and not merged yet."""
    if reached == "after commit" and token.txid == 2:
        raise Ended


def write(place: Place, checkpoint: Path, rows: Rows, fields: str = "n long, run long") -> None:
    """Write the numbers by what a test gives, marked with the number of their fields."""
    names = fields.split(", ")
    spout = GeneratorSpout(
        fields, lambda n: (n, *[len(names)] * (len(names) - 1)), batch=SIZE, total=BATCHES * SIZE
    )
    topology = TridentTopology()
    topology.newStream("numbers", spout).partitionPersist(rows)
    accepted = {"numbers": f"GeneratorSpout of {fields}"}
    with topology.start(
        checkpoint=checkpoint, trigger="available", accept_change=accepted
    ) as started:
        started.awaitTermination()


def test_a_batch_that_waits_is_merged_though_its_state_has_another_name_now(
    place: Place, tmp_path: Path
) -> None:
    with watching(end_after_commit), pytest.raises(Ended):
        write(place, tmp_path / "log", place.rows())
    assert place.column("n") == list(range(SIZE))
    write(place, tmp_path / "log", place.rows(name="renamed"))
    assert place.column("n") == list(range(BATCHES * SIZE))


def test_a_batch_that_waits_is_merged_as_it_was_meant_though_the_table_has_more_columns_now(
    place: Place, tmp_path: Path
) -> None:
    with watching(end_after_commit), pytest.raises(Ended):
        write(place, tmp_path / "log", place.rows("n"))
    place.execute("ALTER TABLE {table} ADD more BIGINT")
    write(place, tmp_path / "log", place.rows("n"), "n long, run long, more long")
    assert sorted(place.found()) == [
        (n, 2, None) if n < 2 * SIZE else (n, 3, 3) for n in range(BATCHES * SIZE)
    ]


def test_rows_that_a_later_row_of_the_batch_refers_to_are_merged_before_it(
    place: Place, tmp_path: Path
) -> None:
    order, item = place.beside("z"), place.beside("a")
    order.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY)")
    item.execute(f"CREATE TABLE {{table}} (id BIGINT PRIMARY KEY REFERENCES {order.table} (id))")
    topology = TridentTopology()
    stream = topology.newStream("ids", FixedBatchSpout("id long", 2, (1,), (2,), (3,)))
    stream.partitionPersist(order.rows("id"))
    stream.partitionPersist(item.rows("id"))
    with topology.start(trigger="available") as started:
        started.awaitTermination()
    assert item.column("id") == [1, 2, 3]


def test_rows_that_were_lost_before_the_commit_are_written_again(
    place: Place, tmp_path: Path
) -> None:
    def lose(reached: str, token: Token) -> None:
        if reached == "after write" and token == (2, 0):
            place.execute(f"DELETE FROM {place.staging}")

    with watching(lose):
        run(place, tmp_path / "log", salt=1)
    assert place.column("n") == list(range(BATCHES * SIZE))


@pytest.mark.parametrize("point", [*POINTS[: POINTS.index("after ready")], "after announce"])
def test_a_driver_that_is_overtaken_anywhere_adds_nothing(
    place: Place, tmp_path: Path, point: str
) -> None:
    seen: list[list[tuple[int, int]]] = []

    def overtake(reached: str, token: Token) -> None:
        if reached == point and token.txid == 2 and not seen:
            seen.append([])
            (tmp_path / "log" / ".lock").unlink()  # as if this driver's machine were out of reach
            run(place, tmp_path / "log", salt=2)
            seen[0] += place.found("n, run")

    overtaken = (StaleBatchError, TakenOverError, LogConflictError)
    with watching(overtake), pytest.raises(overtaken):
        run(place, tmp_path / "log", salt=1)
    assert seen == [place.found("n, run")]
    assert place.column("n") == place.beside("sum").column("n") == list(range(BATCHES * SIZE))
    assert place.beside("sum").found() == place.found("n, run")
