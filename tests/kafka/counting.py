"""A topology that keeps what a stream from Kafka held, and can be stopped and started again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trident import Count, TridentTopology
from trident.api.run import Run
from trident.backends import sqlite
from trident.plan.nodes import Kind
from trident.storm import TupleCollectionGet


class Counting:
    """Counts each value of a stream, through any number of runs of one checkpoint.

    Parameters
    ----------
    folder : Path
        Where checkpoint and state are.
    transactional : bool
        Of which kind the state is: one that is exact with transactional streams only, or any.
    """

    def __init__(self, folder: Path, *, transactional: bool = False) -> None:
        self.folder = folder
        self._state = sqlite.transactional if transactional else sqlite.opaque

    def start(
        self, source: Any, session: Any = None, kind: Kind | None = None, **options: Any
    ) -> Run:
        topology = TridentTopology()
        values = topology.newStream("values", source, kind)
        values = values.project("value").map(lambda value: str(value), "name string")
        counts = values.groupBy("name").persistentAggregate(
            self._state(self.folder / "counts.db"), Count(), "count", name="counts"
        )
        asked = topology.newDRPCStream("counts")
        asked.stateQuery(counts, TupleCollectionGet(), "name, count").project("name, count")
        return topology.start(session, checkpoint=self.folder / "checkpoint", **options)

    def run(self, source: Any, **options: Any) -> dict[str, int]:
        """Read all that there is, and return all counts."""
        with self.start(source, trigger="available", **options) as run:
            run.awaitTermination(60)
            return self.asked(run)

    @staticmethod
    def asked(run: Run) -> dict[str, int]:
        return dict(json.loads(run.drpc.execute("counts", "")))
