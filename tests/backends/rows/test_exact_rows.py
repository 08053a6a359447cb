"""Rows are written once, whatever ends a run, and whatever other rows a batch comes back with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.rows.databases import Place
from trident import GeneratorSpout, TridentTopology
from trident.batch.watchpoints import POINTS, watching
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
