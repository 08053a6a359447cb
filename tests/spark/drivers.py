"""Drivers on Spark that tests kill, one after the other, over one JVM.

A JVM is there after five seconds of computing, and has its first batch after some more. It is not
what these tests are about: what a driver left is on disk, and the JVM of a killed one, which ends
with it elsewhere, is told here to drop what it still runs. `tests.spark.test_session` and
`tests.spark.test_interrupts` have JVMs that end with their drivers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from tests import forks
from tests.servers import spark_kafka


class Drivers:
    """Runs programs that make a session, each in a process of its own.

    Parameters
    ----------
    folder : Path
        Where the JVM puts what is for a time.
    jars : sequence of Path
        What it has beside Spark's own; by default what it reads Kafka with.
    """

    def __init__(self, folder: Path, jars: Sequence[Path] = ()) -> None:
        options = {"spark.driver.defaultJavaOptions": f"-Djava.io.tmpdir={folder}"}
        more = {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
        settings = SparkConf().setAll(
            [*{**options, **(more if jars else spark_kafka.settings())}.items()]
        )
        with (folder / "jvm.log").open("w") as log:
            streams = {"stdout": log, "stderr": log}
            self.gateway: Any = launch_gateway(settings, streams)  # type: ignore[no-untyped-call]
        java = self.gateway.java_parameters
        self._environment = {
            "PYSPARK_GATEWAY_PORT": str(java.port),
            "PYSPARK_GATEWAY_SECRET": java.auth_token,
        }

    @property
    def jvm(self) -> Any:
        """The classes of the JVM."""
        return self.gateway.jvm

    def kill(self, program: ModuleType, *arguments: Any) -> None:
        """Run a program, which is killed where its arguments say."""
        ended = self.run(program, *arguments)
        assert ended.code == -signal.SIGKILL, ended.printed

    def run(self, program: ModuleType, *arguments: Any) -> forks.Ended:
        """Run a program to its end."""
        ended = forks.run(program, *arguments, timeout=280, environment=self._environment)
        self._drop_session()
        return ended

    def _drop_session(self) -> None:
        contexts = getattr(self.jvm.org.apache.spark, "SparkContext$")
        active = getattr(contexts, "MODULE$").getActive()
        if active.isDefined():
            active.get().stop()

    def close(self) -> None:
        """End the JVM."""
        self.gateway.shutdown()
        self.gateway.proc.communicate()
