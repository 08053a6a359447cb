"""Counts a topic by Spark's own source and is killed while it does; run as ``python -m``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.kafka.counting import Counting
from tests.servers import spark_kafka
from trident.spark import kafka_frame, local_session
from trident.spouts.kafka import KafkaSpout
from trident.testing import kill_at


def spout(servers: str, topic: str) -> Any:
    """What is counted, in small batches."""
    return KafkaSpout.opaque(servers, topic, max_records=15)


def main(folder: Path, servers: str, topic: str, point: str, txid: int) -> None:
    """Count the topic until killed at a point of a batch."""
    spark = local_session(**{"spark.master": "local[2]", **spark_kafka.settings()})
    with kill_at(point, txid):
        Counting(folder).run(kafka_frame(spark, spout(servers, topic)), session=spark)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5]))
