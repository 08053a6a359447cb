"""A Spark Connect server in a process of its own, and sessions of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

_MODE = "SPARK_CONNECT_MODE_ENABLED"


class Server:
    """A server that ends with the test, as its input does.

    Parameters
    ----------
    folder : Path
        Holds what the server prints.
    """

    def __init__(self, folder: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if name != _MODE}
        with (folder / "server.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.connect"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url.startswith("sc://"), (folder / "server.log").read_text()

    def close(self) -> None:
        """End the server."""
        self._process.communicate()


@contextmanager
def session_of(url: str) -> Iterator[SparkSession]:
    """A session of a server, while which this process has no classic ones."""
    from pyspark.sql.connect.session import SparkSession as Remote

    with patch.dict(os.environ, {_MODE: "1"}):
        session: Any = Remote.builder.remote(url).create()
        try:
            yield session
        finally:
            session.stop()


def settings() -> Mapping[str, str]:
    """What makes a session the server."""
    import pyspark

    found = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.shuffle.partitions": "2",
    }
    if pyspark.__version__ < "4":
        package = f"org.apache.spark:spark-connect_2.12:{pyspark.__version__}"
        found["spark.jars.packages"] = package
    return found


def main() -> None:
    """Serve until nobody reads."""
    from trident.spark import local_session

    spark = local_session(**{"spark.master": "local[2]"}, **settings())
    service = "org.apache.spark.sql.connect.service.SparkConnectService$"
    served: Any = getattr(getattr(spark._jvm, service), "MODULE$")
    print(f"sc://127.0.0.1:{served.localPort()}", flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
