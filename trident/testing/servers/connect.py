"""A server of Spark Connect, which runs the Spark of the PySpark that is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trident.testing.servers.java import pyspark_home
from trident.testing.servers.process import ServerProcess

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer(ServerProcess):
    """A server of Spark Connect, whose Python workers are this interpreter, with its path."""

    scheme = "sc"
    program = "spark-submit"
    package = "default-jre-headless"
    patience = 120.0

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self.settings = {
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
            "spark.local.dir": str(folder),
            "spark.connect.grpc.binding.address": self.host,
            "spark.connect.grpc.binding.port": str(self.port),
            **(settings or {}),
        }

    def command(self) -> Sequence[str]:
        settings = [f"--conf={name}={value}" for name, value in self.settings.items()]
        path = os.pathsep.join(each or os.getcwd() for each in sys.path)
        python = [f"PYSPARK_PYTHON={sys.executable}", f"PYTHONPATH={path}"]
        submit = str(pyspark_home() / "bin" / "spark-submit")
        return ["env", *python, submit, "--class", _CLASS, *settings, "spark-internal"]
