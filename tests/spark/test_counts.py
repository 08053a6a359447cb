"""What tasks count comes to the driver, attempt by attempt."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from trident.spark.counts import AttemptCounts, make_accumulator

pytestmark = pytest.mark.spark


def test_attempts_that_overlap_count_by_themselves(spark: SparkSession) -> None:
    accumulator = make_accumulator(spark)
    assert accumulator is not None
    one, other = AttemptCounts(accumulator), AttemptCounts(accumulator)

    def count(attempt: AttemptCounts) -> None:
        tasks = spark.sparkContext.parallelize([1, 2, 3], 3)
        tasks.foreach(lambda n: attempt.add({"tried": n}))

    for attempt in (one, other, one):
        count(attempt)
    assert other.take() == {"tried": 6}
    assert one.take() == {"tried": 12}
    assert one.take() == other.take() == {}
