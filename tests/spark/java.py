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
    "-Xlog:disable",  # saved by another Java, or not at all: then classes are loaded as ever
)

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings with which Spark makes no Java of a plan, and compiles none: a quarter of what it costs
tests, which have a few rows. The fixture `compiled` has it as users have it."""


def submit_arguments(*options: str) -> str:
    """What PYSPARK_SUBMIT_ARGS is for drivers and executors with these options."""
    joined = shlex.join(options)
    arguments = ["--driver-java-options", joined]
    arguments += ["--conf", f"spark.executor.extraJavaOptions={joined}"]
    return shlex.join([*arguments, "pyspark-shell"])
