"""Asks a session without Spark's source of Kafka for it; run as ``python -m``."""

from __future__ import annotations

from trident.spark import kafka_frame, local_session
from trident.spark.errors import SparkSessionError
from trident.spouts.kafka import KafkaSpout


def main() -> None:
    """Print what the error says."""
    spark = local_session(**{"spark.master": "local[1]"})
    try:
        kafka_frame(spark, KafkaSpout.opaque("localhost:9092", "lines"))
    except SparkSessionError as error:
        print(error)


if __name__ == "__main__":
    main()
