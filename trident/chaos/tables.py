"""Tables of a database that hold changes: a topology writes them, and loops do by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import Any, NamedTuple

from trident.api.topology import TridentTopology
from trident.backends.rows import Rows, RowsDatabase
from trident.backends.rows.database import alchemy, explained
from trident.backends.rows.urls import database_from_url
from trident.chaos.by_hand import ByHand, Write
from trident.chaos.contender import (
    Contender,
    EpisodePlace,
    Reader,
    TopologyContender,
    TopologyFunction,
    WordSource,
)
from trident.chaos.process import Life
from trident.chaos.record import Record
from trident.chaos.rows_in_tasks import RowsInTasks, Starter
from trident.chaos.servers import DATABASES
from trident.chaos.store import TestedStore
from trident.chaos.truth import Key, Reading, Truth
from trident.chaos.ways import MOST, Way
from trident.states.errors import NoStateError

CHANGES, SUMS, MIRROR = TABLES = ("changes", "sums", "mirror")
"""All changes; the number of changes of each key, and the sum of their values; the last change of
each key that was not deleted."""
HOW_MANY: Key = (CHANGES, None)


class RowChange(NamedTuple):
    """The n-th change: the row of a key is created (c), updated (u) or deleted (d)."""

    n: int
    k: int
    op: str
    v: int | None

    @staticmethod
    def parse(word: str) -> RowChange:
        """Return the change that a word of the record is."""
        n, k, op, v = word.split(",")
        return RowChange(int(n), int(k), op, int(v) if v else None)


@dataclass(frozen=True)
class Changes(Record):
    """A number of changes, each a word."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        choose = random.Random(self.seed)
        there: set[int] = set()
        words = []
        for n in range(self.length):
            k = choose.randrange(self.different)
            op = choose.choice("uud") if k in there else "c"
            there ^= {k} if op != "u" else set()
            words.append(f"{n},{k},{op},{'' if op == 'd' else choose.randint(1, 9)}")
        return tuple(words)


def truth_of_changes(record: Record) -> Truth:
    """Return what a reader finds in the tables after each change."""
    return Truth(effects_of(record))


def effects_of(record: Record) -> Iterator[Reading]:
    """Yield for each change what a reader finds otherwise after it."""
    sums: Counter[Key] = Counter()
    for n, k, op, v in map(RowChange.parse, record.words):
        own = {(SUMS, (k, "changes")): 1, (SUMS, (k, "v")): v or 0}
        sums.update(own)
        row = None if op == "d" else f"change {n}, {v}"
        yield {
            HOW_MANY: n + 1,
            (CHANGES, (n, k, v)): 1,
            **{key: sums[key] for key in own},
            (MIRROR, (k,)): row,
        }


_BY_HAND = (*TABLES, "batches")
_MIXED: Key = ("rows of another driver than those of another table", ())


@dataclass(frozen=True)
class TablesContender(TopologyContender):
    """A topology that writes changes to tables: as they are, added up, and as a mirror.

    Each row has the number of the driver that read the change, which distinguishes rows of
    different attempts of a batch. With `tasks` every second driver has processes write the rows.
    """

    database: RowsDatabase
    tasks: bool = False
    reads_whole = True

    def declare(self, place: EpisodePlace, source: Any, life: int) -> TridentTopology:
        def read_as(word: str) -> list[list[object]]:
            return [[*RowChange.parse(word), 1, life]]

        starter = Starter() if self.tasks and life % 2 else None

        def write_to(table: str, key: str | None = None, **how: Any) -> Rows:
            if starter is None:
                return Rows(self.database, table, key, **how)
            rows = RowsInTasks(self.database, table, key, **how)
            rows.notes, rows.seed, rows.starter = place.notes, f"{place.seed} {life}", starter
            return rows

        changes, sums, mirror = (table_of(place, each) for each in TABLES)
        made = TridentTopology()
        read = made.newStream("words", source).each(
            "word", read_as, "n long, k long, op string, v long, changes long, life long"
        )
        read.partitionPersist(write_to(changes), "n, k, v, life")
        read.partitionPersist(write_to(sums, "k", mode="add"), "k, changes, v, life")
        mirroring = write_to(mirror, "k", order_by="n", delete_where="op")
        read.partitionPersist(mirroring, "k, n, v, op, life")
        return made

    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> AbstractContextManager[Reader]:
        return nullcontext(tables_reader(self.database, place))


def tables_reader(database: RowsDatabase, place: EpisodePlace) -> Reader:
    """Return what reads the tables of an episode."""
    names = [table_of(place, each) for each in TABLES]
    columns = ("n, k, v, life", "changes, k, v, life", "n, k, v, life")
    # One statement sees one moment of all tables, in every database.
    asked = " UNION ALL ".join(
        f"SELECT {index}, {each} FROM {name}"
        for index, (name, each) in enumerate(zip(names, columns, strict=True))
    )
    made = False

    def read() -> Reading:
        nonlocal made
        with explained(database), database.engine.connect() as connection:
            made = made or all(map(alchemy().inspect(connection).has_table, names))
            if not made:
                raise NoStateError(str(database), names[0])
            return reading_of(connection.exec_driver_sql(asked).all())

    return read


def table_of(place: EpisodePlace, name: str) -> str:
    return f"{place.name}-{name}".replace("-", "_")


def reading_of(rows: Sequence[Any]) -> Reading:
    """Return what rows of the tables come to: each has the table's index, and its columns."""
    found: dict[Key, Any] = Counter()
    lives: dict[int, int] = {}
    lives_of_key: Counter[int] = Counter()
    for _, n, k, v, life in (row for row in rows if row[0] == 0):
        found[HOW_MANY] += 1
        found[CHANGES, (n, k, v)] += 1
        lives[n] = life
        lives_of_key[k] += life
    for table, n, k, v, life in rows:
        if table == 1:
            found |= {(SUMS, (k, "changes")): int(n), (SUMS, (k, "v")): int(v or 0)}
            found[_MIXED] += life != lives_of_key[k]
        elif table == 2:
            found[MIRROR, (k,)] = f"change {n}, {v}"
            found[_MIXED] += life != lives.get(n)
    if not found[_MIXED]:
        del found[_MIXED]
    return dict(found)


@dataclass(frozen=True)
class TablesByHand(ByHand):
    """A loop that writes a batch to all tables in one transaction, and notes that elsewhere."""

    database: RowsDatabase
    name = "a plain loop with a transaction a batch"

    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> AbstractContextManager[Reader]:
        return nullcontext(tables_reader(self.database, place))

    def preparing(self, place: EpisodePlace, life: Life) -> Callable[[int, Sequence[str]], Write]:
        changes, sums, mirror, batches = names = [table_of(place, each) for each in _BY_HAND]
        transaction = self.database.transaction
        with transaction() as connection:
            for name in names:
                connection.exec_driver_sql(
                    f"CREATE TABLE IF NOT EXISTS {name} (n BIGINT, k BIGINT, v BIGINT, "
                    "changes BIGINT, life BIGINT)"
                )

        def add(batch: int, words: Sequence[str]) -> None:
            with transaction() as connection:
                if self._is_there(connection, batches, batch):
                    return
                for n, k, op, v in map(RowChange.parse, words):
                    value = "NULL" if v is None else v
                    row = f"(n, k, v, changes, life) VALUES ({n}, {k}, {value}, 1, {life.number})"
                    connection.exec_driver_sql(f"INSERT INTO {changes} {row}")
                    connection.exec_driver_sql(f"DELETE FROM {mirror} WHERE k = {k}")
                    if op != "d":
                        connection.exec_driver_sql(f"INSERT INTO {mirror} {row}")
                    added = connection.exec_driver_sql(
                        f"UPDATE {sums} SET changes = changes + 1, v = v + {v or 0}, "
                        f"life = life + {life.number} WHERE k = {k}"
                    )
                    if not added.rowcount:
                        connection.exec_driver_sql(f"INSERT INTO {sums} {row}")

        return lambda batch, words: partial(add, batch, words)

    def _is_there(self, connection: Any, batches: str, batch: int) -> bool:
        return False


@dataclass(frozen=True)
class TablesByNumber(TablesByHand):
    """The same, where a batch is skipped if its number is there already."""

    name = "a loop that skips the numbers that its table has"

    def _is_there(self, connection: Any, batches: str, batch: int) -> bool:
        found = connection.exec_driver_sql(f"SELECT n FROM {batches} WHERE n = {batch}").first()
        if found is None:
            connection.exec_driver_sql(f"INSERT INTO {batches} (n) VALUES ({batch})")
        return found is not None


@dataclass(frozen=True)
class TableStore(TestedStore):
    """A database, as `MapStore` is a store of maps."""

    option = "--rows"
    servers = DATABASES

    @cached_property
    def database(self) -> RowsDatabase:
        return database_from_url(self.url)

    def record(self, seed: str, length: int) -> Changes:
        return Changes(seed, length)

    def truth(self, make: TopologyFunction, record: Record) -> Truth:
        return truth_of_changes(record)

    def contender(
        self, name: str, make: TopologyFunction, way: Way, source: WordSource
    ) -> TopologyContender:
        database = self.database
        if not way.on_spark:  # its drivers are forked from this process, which has all loaded
            import_module("pyarrow.compute")
            with database.transaction() as connection:
                alchemy().inspect(connection).has_table("any")
            database.engine.dispose()
        tasks = not way.on_spark and database.hosted == "executor"
        return TablesContender(name, source, way.run, database, tasks)

    def compared(self, way: Way, record: Record, source: WordSource) -> Sequence[Contender]:
        return [each(record, MOST, self.database) for each in (TablesByHand, TablesByNumber)]
