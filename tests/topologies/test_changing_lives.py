"""Topologies that are killed anywhere, and changed before the next start: a tuple counts once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.chaos.changing import VERSIONS, Total, add_up, number
from tests.topologies.conftest import PATIENCE, contents
from trident import GeneratorSpout, TridentTopology
from trident.backends import state_from_url
from trident.batch.watchpoints import POINTS, watching
from trident.log.errors import LogMismatchError
from trident.states import ValueSchema
from trident.states.maps.factory import MapStateFactory
from trident.states.values import Token

KEYS = 4
SEEDS = 25


class Killed(BaseException):
    """What no run handles."""


class Life:
    """A topology of which two streams, the state's name and the form of its values may change."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.folder = folder
        self.kind = self.random.choice(["opaque", "transactional"])
        self.totals = {"one": 5}
        self.away: dict[str, int] = {}
        self.version = 1
        self.name = "count"

    def topology(self) -> TridentTopology:
        topology = TridentTopology()
        streams = [
            topology.newStream(
                name,
                GeneratorSpout("k long, n long", lambda n: (n % KEYS, n), batch=5, total=total),
            )
            for name, total in self.totals.items()
        ]
        merged = streams[0] if len(streams) == 1 else topology.merge(*streams)
        place = f"sqlite:{self.folder}/s.db?kind={self.kind}"
        add_up(merged, "k", place, self.name, self.version)
        return topology

    def change(self) -> None:
        """Let some tuples come, and change one thing."""
        for name in self.totals:
            self.totals[name] += self.random.randint(0, 12)
        match self.random.randrange(4):
            case 0:
                self.name = f"count{self.random.randrange(100)}"
            case 1:
                self.version = min(VERSIONS, self.version + self.random.randint(1, 2))
            case 2:
                self.totals |= {"two": 7, **self.away, **self.totals}
            case 3 if "two" in self.totals:
                self.away["two"] = self.totals.pop("two")

    def start(self, *, to_the_end: bool = False) -> None:
        """Run what there is; a batch may be killed somewhere."""
        point, left = self.random.choice(POINTS), [not to_the_end]
        later = self.random.randint(0, 2)

        def kill(reached: str, token: Token) -> None:
            nonlocal later
            if reached == point and left[0]:
                later -= 1
                if later < 0:
                    left[0] = False
                    raise Killed

        with watching(kill):
            run = self.topology().start(
                checkpoint=self.folder / "log",
                trigger="available",
                retries=self.random.choice([0, 1]),
            )
            with run, suppress(Killed):
                run.awaitTermination(PATIENCE)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_each_tuple_counts_once_whatever_changes(seed: int, tmp_path: Path) -> None:
    life = Life(seed, tmp_path)
    for _ in range(5):
        before = dict(life.totals)
        life.change()
        try:
            life.start()
        except LogMismatchError:  # a batch is under way, of the streams that were
            added, life.totals = life.totals, before
            life.start(to_the_end=True)
            life.totals = added
    life.start(to_the_end=True)
    life.totals = {**life.away, **life.totals}
    life.start(to_the_end=True)
    factory = state_from_url(f"sqlite:{tmp_path}/s.db?kind={life.kind}&prefix=count")
    assert isinstance(factory, MapStateFactory)
    schema = ValueSchema(life.version, Total(life.version).upgrade)
    found = contents(factory if life.version == 1 else factory.of_schema(schema))
    expected = {(key,): 0 for key in range(KEYS)}
    for total in life.totals.values():
        for n in range(total):
            expected[n % KEYS,] += n
    assert {key: number(value) for key, value in found.items() if number(value)} == {
        key: total for key, total in expected.items() if total
    }
