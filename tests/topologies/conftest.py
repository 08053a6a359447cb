"""The two engines, and a small way to play batches on either."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.spark.files import Files
from tests.topologies.capture import Captured, captured_in
from trident.api.run import Run
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import GuaranteeWarning
from trident.spouts.feeder import FeederBatchSpout
from trident.states.maps.factory import MapStateFactory, OpaqueMap

PATIENCE = 120.0


class Engine:
    """Starts topologies on one engine.

    Parameters
    ----------
    spark : SparkSession or None
        None for the local engine.
    folder : Path
        For checkpoints and captured tuples.
    """

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def start(self, topology: TridentTopology, **options: Any) -> Run:
        """Start with a checkpoint of this test's own."""
        with warnings.catch_warnings():
            # No test leaves the process, so that memory lasts as long as the checkpoint.
            warnings.filterwarnings("ignore", "state .* is in memory", GuaranteeWarning)
            if self.spark is not None:
                options = {"engine": "spark", **options}
            return topology.start(self.spark, self.folder / "checkpoint", **options)

    def play(
        self,
        topology: TridentTopology,
        spout: FeederBatchSpout,
        *batches: Iterable[Sequence[Any]],
    ) -> None:
        """Feed the batches one after the other, each until it is committed."""
        with self.start(topology) as run:
            feed(run, spout, *batches)

    def capture(self, stream: Stream, name: str = "captured") -> Captured:
        """Keep what a stream carries."""
        return captured_in(self.folder / name, stream)


def feed(run: Run, spout: FeederBatchSpout, *batches: Iterable[Sequence[Any]]) -> None:
    """Feed batches into a run; where it fails instead, raise what it failed with."""
    for batch in batches:
        try:
            spout.feed(batch, PATIENCE)
        except BaseException:
            run.awaitTermination(PATIENCE)
            raise


def contents(factory: MapStateFactory) -> dict[tuple[Any, ...], Any]:
    """All keys and values that a state has committed."""
    state = factory.makeState()
    try:
        return {(*key,): value for *key, value in state.getTuples()}  # type: ignore[attr-defined]
    finally:
        state.close()


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Either engine; Spark's session is the one that all tests share."""
    spark = request.getfixturevalue("spark") if request.param == "spark" else None
    return Engine(spark, tmp_path)


@pytest.fixture(params=["driver", "tasks"])
def kept(request: pytest.FixtureRequest, engine: Engine) -> MapStateFactory:
    """A map that Spark updates on the driver, and one that its tasks update."""
    if request.param == "driver":
        return MemoryMapState.Factory()
    folder = engine.folder / "kept"
    folder.mkdir()
    return OpaqueMap.factory(Files(str(folder)), name="kept")
