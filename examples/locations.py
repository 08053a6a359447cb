"""A state that is no map: a database of where users are, read and written by many users at once.

    python examples/locations.py            # in this process
    python examples/locations.py --spark    # the same topology on Spark

Its updater and its query call methods of its own, `setLocations` and `getLocations`. It keeps what
it has in a database of the driver's machine, so the driver updates it (`hosted`), also on Spark.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trident import (
    FixedBatchSpout,
    QueryFunction,
    Run,
    StateUpdater,
    TridentCollector,
    TridentTopology,
    TridentTuple,
)
from trident.states import Batch, State, StateFactory, StateType

MOVES = [(1, "Rome"), (2, "Oslo"), (3, "Lima"), (1, "Bern"), (2, "Oslo"), (3, "Kyiv"), (1, "Bonn")]


class LocationDB(State):
    """Where each user was last, in a table of SQLite.

    A batch that is written again, with the same tuples, leaves what it left the first time: the
    state is transactional. That is enough behind a spout which emits the same tuples again.
    """

    kind = StateType.TRANSACTIONAL

    def __init__(self, file: Path) -> None:
        # made by the thread that starts the topology, used by the one that runs its batches
        self._db = sqlite3.connect(file, check_same_thread=False)
        self._pending: dict[int, str] = {}
        self._db.execute("create table if not exists locations (user integer primary key, place)")

    def beginCommit(self, batch: Batch) -> None:
        self._pending = {}  # what an attempt that failed has left

    def commit(self, batch: Batch) -> None:
        with self._db:  # one transaction
            self._db.executemany("replace into locations values (?, ?)", self._pending.items())

    def close(self) -> None:
        self._db.close()

    def setLocations(self, users: Iterable[int], places: Iterable[str]) -> None:
        """Remember where users are, until the batch is written."""
        self._pending.update(zip(users, places, strict=True))

    def getLocations(self, users: Sequence[int]) -> list[str | None]:
        """Where users are, in their order, by one query; None for who is not known."""
        marks = ", ".join("?" * len(users))
        query = f"select user, place from locations where user in ({marks})"
        found = dict(self._db.execute(query, users))
        return [found.get(user) for user in users]


class LocationDBFactory(StateFactory):
    """Connects to the database; what it makes are connections, and never the data itself."""

    kind = StateType.TRANSACTIONAL
    hosted = "driver"

    def __init__(self, file: Path) -> None:
        self._file = file

    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> LocationDB:
        return LocationDB(self._file)


class LocationUpdater(StateUpdater[LocationDB]):
    def updateState(
        self, state: LocationDB, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        users = [moved["user"] for moved in tuples]
        state.setLocations(users, [moved["place"] for moved in tuples])


class QueryLocation(QueryFunction[LocationDB, str | None]):
    def batchRetrieve(
        self, state: LocationDB, tuples: Sequence[TridentTuple]
    ) -> Sequence[str | None]:
        return state.getLocations([asked["user"] for asked in tuples])

    def execute(self, tuple: TridentTuple, result: str | None, collector: TridentCollector) -> None:
        collector.emit([result])


def locations(file: Path) -> TridentTopology:
    """Describe the updates of the database, and the query `where`."""
    topology = TridentTopology()
    moves = FixedBatchSpout("user long, place string", 3, *MOVES)
    state = topology.newStream("moves", moves).partitionPersist(
        LocationDBFactory(file), "user, place", LocationUpdater(), name="locations"
    )
    (
        topology.newDRPCStream("where")
        .each("args", lambda args: map(int, args.split()), "user long")
        .stateQuery(state, "user", QueryLocation(), "place string")
        .project("user, place")
    )
    return topology


def start(topology: TridentTopology, checkpoint: Path, on_spark: bool) -> Run:
    if not on_spark:
        return topology.start(checkpoint=checkpoint)
    from trident.spark import local_session  # which needs pyspark, and Java

    return topology.start(local_session(), checkpoint=checkpoint, engine="spark")


def main() -> None:
    parser = argparse.ArgumentParser(description="Where users are, in a state that is no map.")
    parser.add_argument("--spark", action="store_true", help="run every batch on Spark")
    on_spark = parser.parse_args().spark
    with tempfile.TemporaryDirectory() as folder:
        topology = locations(Path(folder, "locations.db"))
        with start(topology, Path(folder, "checkpoint"), on_spark) as run:
            run.processAllAvailable()
            [group] = run.groups.values()
            for batch in group.recentProgress:
                print(f"batch {batch.txid}: {batch.tuples} tuples, {batch.engine}")
            print(f'where("1 2 3 4") = {run.drpc.execute("where", "1 2 3 4")}')


if __name__ == "__main__":
    main()
