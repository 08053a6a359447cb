"""How Spark writes to PostgreSQL by itself: with a JDBC driver, which Maven brings."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

_DRIVER = "org.postgresql:postgresql:42.7.4"


def jdbc_driver(folder: Path) -> Path:
    """Download the driver into `folder`; return its jar."""
    copy = ["dependency:copy", f"-Dartifact={_DRIVER}", f"-DoutputDirectory={folder}"]
    subprocess.run(["mvn", "--batch-mode", "--quiet", *copy], check=True)
    [jar] = folder.glob("*.jar")
    return jar


def jdbc_options(url: str, table: str) -> Mapping[str, str]:
    """Return the options of Spark's writer, which empties the table and fills it."""
    user, _, host = url.removeprefix("postgresql://").rpartition("@")
    return {
        "url": f"jdbc:postgresql://{host}?reWriteBatchedInserts=true",
        "user": user,
        "driver": "org.postgresql.Driver",
        "dbtable": table,
        "batchsize": "10000",
        "truncate": "true",
    }
