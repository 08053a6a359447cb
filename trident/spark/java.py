"""The Java that Spark starts: whether there is one, and whether it is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from trident.spark.errors import SparkSessionError
from trident.spark.versions import OLDEST_JAVA
from trident.states.finding import Finding

_PATIENCE = 30.0


def find_java() -> Finding:
    """Which Java Spark starts: that of JAVA_HOME, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else "java"
    advice = f"Spark needs Java {OLDEST_JAVA} or newer: install it, and set JAVA_HOME."
    if shutil.which(program) is None:
        return Finding("problem", f"Java: there is no {program}", advice)
    try:
        said = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=_PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("problem", f"Java: {program} does not run ({error})", advice)
    first = (said.stderr or said.stdout).strip().partition("\n")[0]
    number = re.search(r'"(?:1\.)?(\d+)', first)
    if number is None or int(number[1]) < OLDEST_JAVA:
        return Finding("problem", f"Java: {program} is {first or 'unknown'}", advice)
    return Finding("ok", f"Java: {program} is {first}")


def require_java() -> None:
    """Raise where Spark would not start, before anything else is done."""
    found = find_java()
    if found.level == "problem":
        raise SparkSessionError(found.what, found.advice)


def explain_start_failure(error: Exception, log: Path | None = None) -> SparkSessionError | None:
    """What PySpark's error about a JVM that did not start means, by its log; None for any other."""
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return None
    found = find_java()
    if found.level == "problem":
        return SparkSessionError(found.what, found.advice)
    said = log.read_text(errors="replace").split("\n") if log is not None else []
    last = next((line.strip() for line in reversed(said) if line.strip()), "")
    advice = f"It said: {last:.300}" if last else "See what it printed."
    return SparkSessionError(f"Spark's JVM ended before it was ready ({found.what})", advice)
