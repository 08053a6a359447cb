"""What operations count in tasks, on its way to the driver: an accumulator of Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from trident.operations.counters import summed
from trident.spark.versions import is_connect

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

_ByAttempt = dict[int, dict[str, int]]


class _Summed(AccumulatorParam[_ByAttempt]):
    """Adds counts up by their names, those of each attempt by themselves."""

    def zero(self, value: Any) -> _ByAttempt:
        return {}

    def addInPlace(self, value1: _ByAttempt, value2: _ByAttempt) -> _ByAttempt:
        for attempt, counted in value2.items():
            value1[attempt] = summed(value1.get(attempt, {}), counted)
        return value1  # the driver takes attempts out of this very dict


@dataclass(frozen=True)
class AttemptCounts:
    """The counts of one attempt's tasks; pickled to executors."""

    accumulator: Accumulator[_ByAttempt]
    attempt: int

    def add(self, counted: dict[str, int]) -> None:
        """Tell the driver what a task has counted."""
        self.accumulator.add({self.attempt: counted})

    def take(self) -> Mapping[str, int]:
        """Return what all tasks have counted, on the driver, and forget it."""
        return self.accumulator.value.pop(self.attempt, {})


class TaskCounts:
    """The counts of a group's tasks, whose batches may overlap; lives on the driver."""

    def __init__(self, session: SparkSession) -> None:
        self._accumulator: Accumulator[_ByAttempt] | None = None
        if not is_connect(session):
            self._accumulator = session.sparkContext.accumulator({}, _Summed())
        self._attempts = count()

    def of_attempt(self) -> AttemptCounts | None:
        """The counts of an attempt that begins; None on Spark Connect."""
        if self._accumulator is None:
            return None
        return AttemptCounts(self._accumulator, next(self._attempts))
