"""The global count of Storm's transactional topologies: how many tuples there were, in a database.

    python examples/transactional_global_count.py --folder .

The database knows nothing of this library. It keeps the count and the batch that it is of; a bolt
adds a batch only where another one was added last. As the spout emits a batch again with the same
tuples, and committer bolts end batches in order, each tuple counts once whatever fails.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Mapping
from typing import Any

from trident.storm import OutputFieldsDeclarer
from trident.transactional import (
    BaseBatchBolt,
    BaseTransactionalBolt,
    BatchOutputCollector,
    BoltTuple,
    ICommitter,
    MemoryTransactionalSpout,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)

WORDS = {
    0: [["cat"], ["dog"], ["chicken"], ["cat"], ["dog"], ["apple"]],
    1: [["cat"], ["dog"], ["apple"], ["banana"]],
    2: [["cat"], ["cat"], ["cat"], ["cat"], ["cat"], ["dog"], ["dog"], ["dog"], ["dog"]],
}


class BatchCount(BaseBatchBolt):
    """Counts the tuples of a batch in one of its tasks."""

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        id: TransactionAttempt,
    ) -> None:
        self.collector = collector
        self.id = id
        self.count = 0

    def execute(self, tuple: BoltTuple) -> None:
        self.count += 1

    def finishBatch(self) -> None:
        self.collector.emit([self.id, self.count])

    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("id, count")


class UpdateGlobalCount(BaseTransactionalBolt, ICommitter):
    """Adds the counts of a batch to the database, unless they are in it."""

    def __init__(self, database: str) -> None:
        self.database = database

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        id: TransactionAttempt,
    ) -> None:
        self.attempt = id
        self.sum = 0

    def execute(self, tuple: BoltTuple) -> None:
        self.sum += tuple["count"]

    def finishBatch(self) -> None:
        txid = self.attempt.getTransactionId()
        with opened(self.database) as database:
            count, stored = database.execute("SELECT count, txid FROM total").fetchone()
            if stored != txid:
                new = (count + self.sum, txid)
                database.execute("UPDATE total SET count = ?, txid = ?", new)
        database.close()


def opened(path: str) -> sqlite3.Connection:
    """The database, with its one row."""
    database = sqlite3.connect(path, isolation_level="IMMEDIATE")
    database.execute("CREATE TABLE IF NOT EXISTS total (id INTEGER PRIMARY KEY, count, txid)")
    database.execute("INSERT OR IGNORE INTO total VALUES (1, 0, 0)")
    database.commit()
    return database


def counting(database: str) -> Any:
    """The topology."""
    spout = MemoryTransactionalSpout(WORDS, "word string", 2)
    builder = TransactionalTopologyBuilder("global-count", "spout", spout, 3)
    builder.setBolt("partial-count", BatchCount(), 5).noneGrouping("spout")
    builder.setCommitterBolt("sum", UpdateGlobalCount(database)).globalGrouping("partial-count")
    return builder.buildTopology()


def main(folder: str) -> None:
    """Count the words; called again it finds nothing new."""
    path = f"{folder}/total.db"
    with counting(path).start(checkpoint=f"{folder}/total", trigger="available") as run:
        run.awaitTermination()
    database = opened(path)
    count, txid = database.execute("SELECT count, txid FROM total").fetchone()
    database.close()
    print(f"{count} words, after batch {txid}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count tuples in a database, each of them once.")
    parser.add_argument("--folder", default=".", help="where database and checkpoint are")
    main(parser.parse_args().folder)
