"""What Spark needs to read Kafka; no server, but missing or promised like one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trident.testing.servers import java
from trident.testing.servers.process import MissingServer


def jars() -> list[Path]:
    """The jars; raise MissingServer where setup/servers has not collected them."""
    return sorted(java.jars("spark_kafka").glob("*.jar"))


def settings() -> Mapping[str, str]:
    """The settings of a session that has them, where they are there: it is given none later."""
    try:
        return {"spark.jars": ",".join(map(str, jars()))}
    except MissingServer:
        return {}
