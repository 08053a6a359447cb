"""What servers that are written in Java are started with."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from trident.testing.servers.process import MissingServer

_HERE = Path(__file__).parent


def jdk(server: str) -> str:
    """Return a JDK's ``java``, which runs source files too."""
    home = os.environ.get("JAVA_HOME")
    programs = os.path.join(home, "bin") if home else None
    java, javac = shutil.which("java", path=programs), shutil.which("javac", path=programs)
    if java is None or javac is None:
        raise MissingServer(f"{server} needs a JDK: setup/servers (default-jdk-headless)")
    return java


def jars(name: str) -> Path:
    """Return the folder into which setup/servers put what ``<name>_jars.xml`` tells."""
    version = re.search(rf"<{name}.version>(.*)</", (_HERE / f"{name}_jars.xml").read_text())
    assert version is not None
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache, "trident-spark", f"{name}-{version[1]}")
    if not folder.is_dir():
        raise MissingServer(f"jars of {name} are not in {folder}: setup/servers puts them there")
    return folder
