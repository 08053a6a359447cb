"""Counts words, and answers over HTTP and Thrift how often each was counted.

    python examples/drpc_server.py --port 3774 --thrift-port 3772
    curl http://localhost:3774/drpc/words/cat%20dog
    python examples/drpc_client.py localhost:3774 "cat dog" "the"

The count is kept in a folder, and goes on there at the next start.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from trident import Count, FilterNull, FixedBatchSpout, MapGet, Split, Sum, TridentTopology

LINES = [("the cat sat on the mat",), ("the dog saw the cat",), ("the man walked the dog",)]


def word_count(data: Path) -> TridentTopology:
    """Return the topology: a count of words, and a function that sums those of some."""
    topology = TridentTopology()
    counts = (
        topology.newStream("lines", FixedBatchSpout("line string", 1, *LINES))
        .each("line", Split(), "word")
        .groupBy("word")
        .persistentAggregate(f"sqlite:{data / 'counts.db'}", Count(), "count")
    )
    (
        topology.newDRPCStream("words")
        .each("args", Split(), "word")
        .groupBy("word")
        .stateQuery(counts, "word", MapGet(), "count")
        .filter("count", FilterNull())
        .aggregate("count", Sum(), "sum")
    )
    return topology


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=3774)
    parser.add_argument("--thrift-port", type=int, default=3772)
    parser.add_argument("--data", type=Path, default=Path("drpc-data"))
    options = parser.parse_args()

    options.data.mkdir(parents=True, exist_ok=True)
    with word_count(options.data).start(checkpoint=options.data / "checkpoint") as run:
        server = run.serve(port=options.port, thrift_port=options.thrift_port)
        run.processAllAvailable()
        print(f"{server.url}/drpc/words/ and Thrift on port {server.thrift_port}", flush=True)
        run.awaitTermination()  # until Ctrl-C


if __name__ == "__main__":
    main()
