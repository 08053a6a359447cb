"""How tests start the JVMs of Spark: to be there soon, rather than to be fast for long."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

CLASSES = Path(sys.prefix, "spark_classes.jsa")
"""Where `tests.spark.save_classes` leaves classes as a JVM has them when it has loaded them."""

OPTIONS = (
    "-XX:TieredStopAtLevel=1",  # compile once and quickly: a test ends before more would pay
    "-XX:ReservedCodeCacheSize=240m",  # that level reserves 48 MB, which the whole suite fills
    f"-XX:SharedArchiveFile={CLASSES}",
    "-XX:+UseSerialGC",  # two cores have better to do than to collect garbage beside a program
    "-XX:MetaspaceSize=300m",  # else the heap is collected whenever many classes are loaded
    "-Xlog:disable",  # saved by another Java, or not at all: then classes are loaded as ever
)

HEAP = ("-Xms768m", "-Xmn384m")
"""Room in a JVM with a session, where most objects die before a small heap would be full."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings with which Spark makes no Java of a plan, and compiles none: a quarter of what it costs
tests, which have a few rows. The fixture `compiled` has it as users have it."""


def submit_environment(*options: str) -> dict[str, str]:
    """The variables by which each JVM that runs ``spark-submit`` has these options.

    So have its executors. A session of Python, in whatever program, is `INTERPRETED` too.
    """
    settings = {**INTERPRETED, "spark.executor.extraJavaOptions": shlex.join(options)}
    arguments = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    return {
        "SPARK_SUBMIT_OPTS": shlex.join(options),
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYSPARK_SUBMIT_ARGS": shlex.join([*arguments, "pyspark-shell"]),
    }
