"""The Spark engine: topologies as DataFrames, by Structured Streaming or our own loop."""

from typing import TYPE_CHECKING

try:
    from trident.spark.versions import require_spark

    require_spark()
    from trident.spark.session import local_session
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("pyspark", "py4j"):
        raise
    raise ImportError(
        'topologies on Spark need PySpark: pip install "trident-spark[spark]"'
    ) from error

if TYPE_CHECKING:
    from trident.spark.kafka_source import kafka_frame

__all__ = ["kafka_frame", "local_session"]

if not TYPE_CHECKING:

    def __getattr__(name):
        if name == "kafka_frame":  # loaded when it is used, as it takes as long as all of Spark
            from trident.spark.kafka_source import kafka_frame

            return kafka_frame
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
