"""A word count over any spout, kept through any number of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trident import Count, MapGet, TridentTopology
from trident.backends import sqlite


def count(folder: Path, spout: Any, field: str, asked: list[Any], **options: Any) -> list[Any]:
    """Run all there is, and return how often each of `asked` has come in the field."""
    topology = TridentTopology()
    counts = (
        topology.newStream("values", spout)
        .groupBy(field)
        .persistentAggregate(sqlite.opaque(folder / "counts.db"), Count(), "count", name="counts")
    )
    asking = topology.newDRPCStream("counts").flatMap(json.loads, field)
    asking.stateQuery(counts, field, MapGet(), "count").project("count")
    options = {"checkpoint": folder / "checkpoint", "trigger": "available", **options}
    with topology.start(**options) as run:
        run.awaitTermination(60)
        return [found for (found,) in json.loads(run.drpc.execute("counts", json.dumps(asked)))]
