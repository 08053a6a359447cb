"""A batch for two databases, or for a table and counts elsewhere, whatever ends its run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.backends.rows.databases import Place
from trident import Count, GeneratorSpout, TridentTopology
from trident.backends import state_from_url
from trident.batch.watchpoints import watching
from trident.states.control import Control, ControlRecord, Prepared
from trident.states.errors import StateUnavailableError
from trident.states.values import Token

BATCHES, SIZE = 3, 4
BETWEEN = "between two announcements"
POINTS = ("before commit", "after commit", BETWEEN, "after announce")


class Ended(Exception):
    """Ends a run as a crash does."""


@contextmanager
def ending_at(point: str, look: Callable[[], None]) -> Iterator[None]:
    """Look at the targets and end the run where batch 2 reaches a point."""

    def end() -> None:
        look()
        raise Ended

    def reached(at: str, token: Token) -> None:
        if (at, token.txid) == (point, 2):
            end()

    with pytest.MonkeyPatch.context() as patch, watching(reached):
        if point == BETWEEN:
            _end_at_the_last(patch, end)
        yield


def _end_at_the_last(patch: pytest.MonkeyPatch, end: Callable[[], None]) -> None:
    """End the run when the last target but one was told that batch 2 is committed."""
    told: list[object] = []

    def ends(self: Any, record: ControlRecord | None = None) -> None:
        if (record or self.record).token.txid == 2:
            told.append(self)
            if len(told) == 2 or record:
                if isinstance(self, Prepared):
                    self.drop()  # as the database does when its client is gone
                end()
        announce[type(self)](self, *[record] * bool(record))

    announce: dict[type, Any] = {Prepared: Prepared.announce, Control: Control.announce}
    for kind in announce:
        patch.setattr(kind, "announce", ends)


def run(checkpoint: Path, *targets: Callable[[Any], object], salt: int) -> None:
    """Write numbers to all targets."""
    spout = GeneratorSpout(
        "n long, run long", lambda n: (n, salt), batch=SIZE, total=BATCHES * SIZE
    )
    topology = TridentTopology()
    numbers = topology.newStream("numbers", spout)
    for target in targets:
        target(numbers)
    with topology.start(checkpoint=checkpoint, trigger="available") as started:
        started.awaitTermination()


@pytest.mark.parametrize("point", POINTS)
def test_tables_of_two_databases_have_whole_batches_and_differ_by_one_at_most(
    place: Place, tmp_path: Path, point: str
) -> None:
    other = Place.at(f"sqlite:{tmp_path}/other.db")
    both = [lambda stream, at=at: stream.partitionPersist(at.rows()) for at in (place, other)]
    seen: list[list[int]] = []

    def look() -> None:
        seen.extend(at.column("n") for at in (place, other))

    with pytest.raises(Ended), ending_at(point, look):
        run(tmp_path / "log", *both, salt=1)
    batches = [len(numbers) // SIZE for numbers in seen]
    assert seen == [[*range(count * SIZE)] for count in batches]
    assert sorted(batches) == {BETWEEN: [1, 2], "after announce": [2, 2]}.get(point, [1, 1])
    run(tmp_path / "log", *both, salt=2)
    assert place.found() == other.found()
    assert place.column("n") == [*range(BATCHES * SIZE)]


def test_an_announcement_that_one_of_two_databases_misses_is_made_anew(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Place.at(f"sqlite:{tmp_path}/other.db")
    both = [lambda stream, at=at: stream.partitionPersist(at.rows()) for at in (place, other)]
    announce, told = Prepared.announce, []

    def away_once(self: Prepared) -> None:
        told.append(self)
        if len(told) == 2:
            self.drop()
            raise StateUnavailableError("it", "the connection was lost")
        announce(self)

    monkeypatch.setattr(Prepared, "announce", away_once)
    run(tmp_path / "log", *both, salt=1)
    assert place.column("n") == other.column("n") == [*range(BATCHES * SIZE)]


@pytest.mark.parametrize("point", POINTS)
def test_a_table_and_counts_in_redis_have_the_same_batches_in_the_end(
    redis_server: Any, tmp_path: Path, point: str
) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    counts = f"{redis_server.url}?prefix={place.table}"
    targets = [
        lambda stream: stream.partitionPersist(place.rows()),
        lambda stream: stream.groupBy("run").persistentAggregate(counts, Count(), "count"),
    ]
    seen: list[tuple[int, int]] = []

    def counted(salt: int) -> int:
        state: Any = state_from_url(counts).makeState()
        [found] = state.multiGet([(salt,)])
        state.close()
        return found or 0

    with (
        pytest.raises(Ended),
        ending_at(point, lambda: seen.append((len(place.found()), counted(1)))),
    ):
        run(tmp_path / "log", *targets, salt=1)
    [numbers] = seen
    assert {*numbers} <= {SIZE, 2 * SIZE}
    run(tmp_path / "log", *targets, salt=2)
    assert place.column("n") == [*range(BATCHES * SIZE)]
    for salt in (1, 2):
        assert counted(salt) == len([1 for _, marked in place.found() if marked == salt])
