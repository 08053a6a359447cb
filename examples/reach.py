"""Reach: how many different people have seen a URL, asked for while nothing is stored for it.

    python examples/reach.py [--spark]

A query finds who has tweeted the URL, then the followers of each of them, and counts each follower
once. Both tables are static states: here they are dicts, elsewhere a database. With ``--spark``
they are static DataFrames, and each request is a Spark job that joins them: for tables that are too
large to look up key by key.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trident import CombinerAggregator, Count, MapGet, TridentTopology
from trident.states import ReadOnlyMapState, ReadOnlyState, StateFactory

TWEETERS = {
    "storm.example/trident": ["ann", "ben", "cem"],
    "spark.example/streams": ["ben", "dot"],
    "quiet.example": ["eli"],
}
FOLLOWERS = {
    "ann": ["p01", "p02", "p03", "p04", "p05", "p06", "p07"],
    "ben": ["p05", "p06", "p08", "p09", "p10", "p11"],
    "cem": ["p01", "p11", "p12", "p13", "p14", "p15", "p16"],
    "dot": ["p02", "p08", "p20"],
}


class Table(ReadOnlyState, ReadOnlyMapState):
    """A map that is only asked; it needs one method, and is handed many keys at once."""

    def __init__(self, rows: Mapping[str, list[str]]) -> None:
        self._rows = rows

    def multiGet(self, keys: Iterable[Sequence[Any]]) -> list[Any]:
        return [self._rows.get(key) for [key] in keys]


class TableFactory(StateFactory):
    """Makes the table in whichever process asks."""

    def __init__(self, rows: Mapping[str, list[str]]) -> None:
        self._rows = rows

    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> Table:
        return Table(self._rows)


class One(CombinerAggregator[int]):
    """One for a group, however many tuples it has."""

    output_types = (int,)

    def init(self, tuple: Sequence[Any]) -> int:
        return 1

    def combine(self, a: int, b: int) -> int:
        return 1

    def zero(self) -> int:
        return 1


def each_of(names: list[str] | None) -> list[str]:
    """Expand a list; a key that is not in the table has none."""
    return names or []


def reach() -> TridentTopology:
    """Describe the query `reach`."""
    topology = TridentTopology()
    tweeters = topology.newStaticState(TableFactory(TWEETERS), name="tweeters")
    followers = topology.newStaticState(TableFactory(FOLLOWERS), name="followers")
    (
        topology.newDRPCStream("reach")
        .stateQuery(tweeters, "args", MapGet(), "tweeters")
        .each("tweeters", each_of, "tweeter")
        .shuffle()  # the followers of several tweeters are looked up at once
        .stateQuery(followers, "tweeter", MapGet(), "followers")
        .parallelismHint(4)
        .each("followers", each_of, "follower")
        .groupBy("follower")
        .aggregate(One(), "one")
        .aggregate(Count(), "reach")
    )
    return topology


def reach_on_spark() -> TridentTopology:
    """Describe the same query over DataFrames, which elsewhere are files or tables."""
    from trident.spark import local_session

    spark = local_session()
    tweets = [(url, name) for url, names in TWEETERS.items() for name in names]
    follows = [(name, each) for name, found in FOLLOWERS.items() for each in found]
    topology = TridentTopology()
    asked = topology.newDRPCStream("reach", engine="spark")
    tweeters = topology.newStaticStream(spark.createDataFrame(tweets, "url string, name string"))
    followers = topology.newStaticStream(
        spark.createDataFrame(follows, "name string, follower string").cache()
    )
    known = topology.join(asked, "args", tweeters, "url", "url, name")
    (
        topology.join(known, "name", followers, "name", "name, url, follower")
        .groupBy("follower")
        .aggregate(One(), "one")
        .aggregate(Count(), "reach")
    )
    return topology


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", action="store_true", help="ask static DataFrames, on Spark")
    topology = reach_on_spark() if parser.parse_args().spark else reach()
    with topology.start() as run:
        for url in [*TWEETERS, "unknown.example"]:
            print(f"{url}: {run.drpc.execute('reach', url, timeout=60)}")


if __name__ == "__main__":
    main()
