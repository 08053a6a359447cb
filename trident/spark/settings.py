"""Settings of the session that a batch's jobs run in."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

_EXCLUDED = "spark.sql.optimizer.excludedRules"
_RULES = ("PropagateEmptyRelation", "ConvertToLocalRelation", "PruneFilters")
"""They leave no partition where they find that there are no rows, and so no task that could tell
what a partition without rows gives."""


def set_up(session: SparkSession, partitions: int) -> None:
    """Set a session of our own up for small jobs.

    Adaptive execution would make two jobs of one.

    Parameters
    ----------
    session : SparkSession
        One that nobody else's jobs run in.
    partitions : int
        How many partitions an exchange makes where nothing else is said.
    """
    conf: Any = session.conf
    conf.set("spark.sql.adaptive.enabled", "false")
    conf.set("spark.sql.shuffle.partitions", str(partitions))
    rules = [f"org.apache.spark.sql.catalyst.optimizer.{name}" for name in _RULES]
    excluded = conf.get(_EXCLUDED, None)
    conf.set(_EXCLUDED, ",".join([excluded, *rules] if excluded else rules))
