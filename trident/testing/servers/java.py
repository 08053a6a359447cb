"""What servers that are written in Java are started with."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from trident.testing.servers.process import MissingServer, ServerProcess

_HERE = Path(__file__).parent


class JavaServer(ServerProcess):
    """A server that is written in Java."""

    program = "java"
    package = "default-jdk-headless"
    patience = 60.0

    def java(self, classpath: object, memory: str, *options: str) -> list[str]:
        """The JVM, with what is small and starts quickly."""
        limits = [f"-Xmx{memory}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [jdk(type(self).__name__), *limits, *options, "-cp", str(classpath)]

    def write(self, name: str, text: str | Mapping[str, object]) -> Path:
        """A file in its folder, of some text or of settings."""
        if not isinstance(text, str):
            text = "".join(f"{setting}={value}\n" for setting, value in text.items())
        file = self.folder / name
        file.write_text(text)
        return file


def jdk(server: str) -> str:
    """Return a JDK's ``java``, which runs source files too."""
    home = os.environ.get("JAVA_HOME")
    programs = os.path.join(home, "bin") if home else None
    java, javac = shutil.which("java", path=programs), shutil.which("javac", path=programs)
    if java is None or javac is None:
        found = f"JAVA_HOME, {home}, is none" if home else "javac is not installed"
        advice = "On Debian: apt-get install default-jdk-headless"
        raise MissingServer(f"{server} needs a JDK, and {found}", advice)
    return java


def pyspark_home() -> Path:
    """Return the folder of PySpark, found without importing it."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        advice = 'From PyPI: pip install "trident-spark[spark]"'
        raise MissingServer("PySpark is not installed", advice)
    return Path(found.origin).parent


def jars(name: str) -> Path:
    """Return the folder into which Maven has put what ``<name>_jars.xml`` tells."""
    project = _HERE / f"{name}_jars.xml"
    version = re.search(rf"<{name}.version>(.*)</", project.read_text())
    assert version is not None
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache, "trident-spark", f"{name}-{version[1]}")
    if not folder.is_dir():
        problem = f"the jars of {name} are not in {folder}"
        raise MissingServer(problem, f"Maven collects them, once: {_collect(project, folder)}")
    return folder


def _collect(project: Path, folder: Path) -> str:
    """The commands that do it; what was interrupted is not taken for complete."""
    partly = f"{folder}.partly"
    collect = ["mvn", "-q", "-f", str(project), "dependency:copy-dependencies"]
    collect += ["-DincludeScope=runtime", f"-DoutputDirectory={partly}"]
    return f"{shlex.join(collect)} && {shlex.join(['mv', partly, str(folder)])}"
