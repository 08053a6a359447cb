"""The Spark engine: topologies as DataFrames, by Structured Streaming or our own loop."""

try:
    from trident.spark.session import local_session
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("pyspark", "py4j"):
        raise
    raise ImportError(
        'topologies on Spark need PySpark: pip install "trident-spark[spark]"'
    ) from error

__all__ = ["local_session"]
