"""A word count over a folder of text files, as Structured Streaming reads it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from trident import Count, FilterNull, MapGet, Split, Sum, TridentTopology, native
from trident.api.run import Run
from trident.backends import sqlite
from trident.states.maps.factory import MapStateFactory

PATIENCE = 120.0


class Lines:
    """A folder of text files, one of them a batch, and what was counted of them.

    Parameters
    ----------
    spark : SparkSession
        Reads the files.
    folder : Path
        Holds the files, the checkpoint and the state.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.texts = folder / "texts"
        self.texts.mkdir(exist_ok=True)
        self.checkpoint = folder / "checkpoint"
        self.factory: MapStateFactory = sqlite.opaque(folder / "counts.db", "count")

    def write(self, *texts: str) -> None:
        """Add files, each newer than the one before."""
        for text in texts:
            number = len(list(self.texts.iterdir()))
            path = self.texts / f"{number:03}.txt"
            path.write_text(text)
            os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))

    def stream(self) -> Any:
        """The files as a streaming DataFrame."""
        reader = self.spark.readStream.option("maxFilesPerTrigger", 1)
        return reader.text(str(self.texts))

    def topology(
        self, split: Callable[..., Iterable[str]] | Any = None, **options: Any
    ) -> TridentTopology:
        """Count words; ``words(args)`` sums the counts of several."""
        topology = TridentTopology()
        stream = topology.newStream("lines", self.stream(), **options)
        counts = (
            stream.each("value", split or Split(), "word string")
            .groupBy("word")
            .persistentAggregate(self.factory, Count(), "count")
        )
        (
            topology.newDRPCStream("words")
            .each("args", Split(), "word")
            .groupBy("word")
            .stateQuery(counts, "word", MapGet(), "count")
            .each("count", FilterNull())
            .aggregate("count", Sum(), "sum")
        )
        return topology

    def start(self, topology: TridentTopology | None = None, **options: Any) -> Run:
        """Start with this folder's checkpoint, by default until all files are counted."""
        made = topology or self.topology()
        return made.start(self.spark, self.checkpoint, **{"trigger": "available", **options})

    def count(self, topology: TridentTopology | None = None, **options: Any) -> None:
        """Run until all files are counted."""
        with self.start(topology, **options) as run:
            assert run.awaitTermination(PATIENCE)

    @property
    def counts(self) -> dict[str, int]:
        """What the state holds."""
        state: Any = self.factory.makeState()
        try:
            return dict(state.getTuples())
        finally:
            state.close()

    @property
    def expected(self) -> dict[str, int]:
        """The words of all files."""
        texts = [path.read_text() for path in self.texts.iterdir()]
        return dict(Counter(word for text in texts for word in text.split()))


NATIVE_SPLIT = native("explode(filter(split(value, ' '), word -> word <> ''))")
