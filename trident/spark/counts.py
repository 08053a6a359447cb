"""What operations count in tasks, on its way to the driver: an accumulator of Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from trident.operations.counters import summed
from trident.spark.versions import is_connect

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

_ByAttempt = dict[str, dict[str, int]]


class _Summed(AccumulatorParam[_ByAttempt]):
    """Adds counts up by their names, those of each attempt by themselves."""

    def zero(self, value: Any) -> _ByAttempt:
        return {}

    def addInPlace(self, value1: _ByAttempt, value2: _ByAttempt) -> _ByAttempt:
        for attempt, counted in value2.items():
            value1[attempt] = summed(value1.get(attempt, {}), counted)
        return value1  # the driver takes attempts out of this very dict


def make_accumulator(session: SparkSession) -> Accumulator[_ByAttempt] | None:
    """Return what adds up the counts of a group's tasks; None on Spark Connect."""
    return None if is_connect(session) else session.sparkContext.accumulator({}, _Summed())


@dataclass(frozen=True)
class AttemptCounts:
    """The counts of one attempt's tasks; pickled to executors. Attempts may overlap."""

    accumulator: Accumulator[_ByAttempt]
    attempt: str = field(default_factory=lambda: uuid4().hex)

    def add(self, counted: dict[str, int]) -> None:
        """Tell the driver what a task has counted."""
        self.accumulator.add({self.attempt: counted})

    def take(self) -> Mapping[str, int]:
        """Return what all tasks have counted, on the driver, and forget it."""
        return self.accumulator.value.pop(self.attempt, {})
