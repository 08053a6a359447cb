"""The Spark engine: topologies as DataFrames, by Structured Streaming or our own loop."""

from trident.spark.session import local_session

__all__ = ["local_session"]
