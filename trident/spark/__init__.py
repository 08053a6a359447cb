"""The Spark engine; only here are pyspark and pyarrow imported."""

from trident.spark.session import local_session

__all__ = ["local_session"]
