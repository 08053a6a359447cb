"""What operations count in tasks, on its way to the driver: an accumulator of Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from trident.operations.counters import summed
from trident.spark.versions import is_connect

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator


class _Summed(AccumulatorParam[dict[str, int]]):
    """Adds counts up by their names."""

    def zero(self, value: Any) -> dict[str, int]:
        return {}

    def addInPlace(self, value1: dict[str, int], value2: dict[str, int]) -> dict[str, int]:
        return summed(value1, value2)


class TaskCounts:
    """The counts of a group's tasks; lives on the driver."""

    def __init__(self, session: SparkSession) -> None:
        self.accumulator: Accumulator[dict[str, int]] | None = None
        if not is_connect(session):
            self.accumulator = session.sparkContext.accumulator({}, _Summed())
        self._taken: Mapping[str, int] = {}

    def take(self) -> dict[str, int]:
        """What was counted since this was asked last."""
        if self.accumulator is None:
            return {}
        now = dict(self.accumulator.value)
        since = {name: count - self._taken.get(name, 0) for name, count in now.items()}
        self._taken = now
        return {name: count for name, count in since.items() if count}
