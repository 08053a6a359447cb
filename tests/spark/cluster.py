"""A standalone cluster of two workers on this machine."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.spark import java
from trident.testing.servers.process import accepts, free_port, wait_until

_HOME = Path(pyspark.__file__).parent
_PATIENCE = 90.0


@contextmanager
def cluster(folder: Path, cores: int = 1) -> Iterator[str]:
    """Start a master and two workers of so many cores each; yield the master's address."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    environment = {
        **{name: os.environ[name] for name in os.environ if name != "PYTHONPATH"},
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": shlex.join(java.OPTIONS),
        "PYSPARK_PYTHON": sys.executable,
    }

    def started(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("wb") as log:
            command = [str(_HOME / "bin" / "spark-class"), *arguments]
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    package = "org.apache.spark.deploy"
    with ExitStack() as running:
        place = ("--host", "127.0.0.1", "--webui-port", "0")
        master = started("master", f"{package}.master.Master", *place, "--port", str(port))
        running.callback(_ended, master)
        wait_until(lambda: accepts("127.0.0.1", port), _PATIENCE)
        for number in (1, 2):
            limits = ("--cores", str(cores), "--memory", "1g")
            limits += ("--work-dir", str(folder / f"w{number}"))
            worker = started(
                f"worker{number}", f"{package}.worker.Worker", *place, *limits, address
            )
            running.callback(_ended, worker)
        log = folder / "master.log"
        wait_until(lambda: log.read_text().count("Registering worker") == 2, _PATIENCE)
        yield address


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(_PATIENCE)
