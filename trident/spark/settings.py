"""Settings of the session that the jobs of batches and queries run in."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from trident.spark.access import access_to

_EXCLUDED = "spark.sql.optimizer.excludedRules"
_RULES = ("PropagateEmptyRelation", "ConvertToLocalRelation", "PruneFilters")
"""Where there are no rows these rules leave no partition, and so no task to aggregate nothing."""


def set_up(session: SparkSession, partitions: int) -> None:
    """Set up a session of the engine's own for small jobs, which adaptive execution would
    double."""
    conf: Any = session.conf
    conf.set("spark.sql.adaptive.enabled", "false")
    conf.set("spark.sql.shuffle.partitions", str(partitions))
    rules = [f"org.apache.spark.sql.catalyst.optimizer.{name}" for name in _RULES]
    excluded = conf.get(_EXCLUDED, None)
    conf.set(_EXCLUDED, ",".join([excluded, *rules] if excluded else rules))


def own_session(spark: SparkSession, partitions: int) -> SparkSession:
    """A new session with the user's settings, set up for small jobs."""
    session = access_to(spark).own_session()
    set_up(session, partitions)
    return session


def default_partitions(spark: SparkSession) -> int:
    """How many partitions an exchange makes where nothing else is said."""
    shuffles = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return min(shuffles, access_to(spark).parallelism)
