"""Saves the classes that Spark loads, so that the JVMs of tests need not; run as ``python -m``.

A driver is there, and has counted its first words, in two thirds of the time.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.spark.java import CLASSES, submit_environment
from tests.spark.lines import Lines
from trident.spark import local_session


def main() -> None:
    """Count words of files, and have the JVM save its classes as it ends."""
    saved = CLASSES.with_suffix(".partly")
    os.environ.update(submit_environment(f"-XX:ArchiveClassesAtExit={saved}"))
    spark = local_session(**{"spark.master": "local[2]"})
    with tempfile.TemporaryDirectory() as folder:
        lines = Lines(spark, Path(folder))
        lines.write("some words", "and some more")
        lines.count()
        assert lines.counts == lines.expected
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.proc.stdin.close()  # without which Spark's JVM ends
    assert gateway.proc.wait(120) == 0
    saved.replace(CLASSES)


if __name__ == "__main__":
    main()
