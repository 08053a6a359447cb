"""A topology that a command serves: what it counts is in the SQLite file of an environment."""

from __future__ import annotations

import os

from trident import Count, FeederBatchSpout, MapGet, Split, TridentTopology
from trident.backends import sqlite

spout = FeederBatchSpout("line string")


def topology() -> TridentTopology:
    made = TridentTopology()
    words = made.newStream("lines", spout).each("line", Split(), "word").groupBy("word")
    counts = words.persistentAggregate(
        sqlite.opaque(os.environ["SERVED_DATABASE"]), Count(), "count"
    )
    made.newDRPCStream("count").stateQuery(counts, "args", MapGet(), "n").project("n")
    return made


nothing = 5
