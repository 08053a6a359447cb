"""A program that counts words from Kafka and is killed while it does; run as ``python -m``.

It reads one topic twice: as an opaque stream and as a transactional one, each in a batch group of
its own and into the kind of state that goes with it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from trident import Count, Split, TridentTopology
from trident.backends import sqlite
from trident.batch.watchpoints import watching
from trident.spouts.kafka import KafkaSpout
from trident.states import Token
from trident.storm import TupleCollectionGet

KINDS = {
    "opaque": (KafkaSpout.opaque, sqlite.opaque),
    "transactional": (KafkaSpout.transactional, sqlite.transactional),
}


def topology(folder: Path, servers: str, topic: str) -> TridentTopology:
    """Both groups; a query of the kind's name answers with its counts."""
    made = TridentTopology()
    for kind, (spout, state) in KINDS.items():
        sentences = made.newStream(
            kind, spout(servers, topic, fields="value", max_records=7, poll_timeout=30)
        )
        counts = (
            sentences.each("value", Split(), "word")
            .groupBy("word")
            .persistentAggregate(state(folder / "counts.db"), Count(), "count", name=kind)
        )
        asked = made.newDRPCStream(kind).stateQuery(counts, TupleCollectionGet(), "word, count")
        asked.project("word, count")
    return made


def main(folder: Path, servers: str, topic: str, how: str, number: float) -> None:
    """Run until killed: at a named point, the one after so many passed; or after some seconds."""
    left = int(number)

    def watch(point: str, token: Token) -> None:
        nonlocal left
        if point == how:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    if how == "clock":
        signal.setitimer(signal.ITIMER_REAL, number)  # nobody handles it: the system ends us
    started = topology(folder, servers, topic).start(checkpoint=folder / "run", trigger="available")
    with watching(watch), started as run:
        run.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5], float(sys.argv[5]))
