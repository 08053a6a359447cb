"""A PATH of our own for the set-up scripts: pretended interpreters, Javas and package tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = (
    "awk",
    "cat",
    "dirname",
    "find",
    "head",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "sed",
    "sh",
    "touch",
)

# Runs what the scripts ask of an interpreter, as if it were another version
PRETENDED_PYTHON = """\
import pathlib, sys

sys.version_info = tuple({version}) + ("final", 0)
log = pathlib.Path({log!r})
if not pathlib.Path({ensurepip!r}).exists():
    sys.modules["ensurepip"] = None
arguments = sys.argv[1:]
if arguments[0] == "-c":
    exec(arguments[1])
elif arguments[:2] == ["-m", "venv"]:
    inside = pathlib.Path(arguments[-1], "bin", "python")
    inside.parent.mkdir(parents=True, exist_ok=True)
    inside.write_text(pathlib.Path({script!r}).read_text())
    inside.chmod(0o755)
elif arguments[:3] == ["-m", "pip", "install"]:
    import os
    with log.open("a") as file:
        print("TMPDIR=" + os.environ.get("TMPDIR", ""), *arguments[3:], file=file)
    sys.exit({pip_exit})
"""


@dataclass(frozen=True)
class Machine:
    """A folder of commands that is the whole PATH, and what was asked of them."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def ensurepip(self) -> Path:
        """Exists where Python's ensurepip is installed."""
        return self.folder / "ensurepip"

    @property
    def installed(self) -> str:
        """What pip was asked to install, a line a call."""
        log = self.folder / "pip.log"
        return log.read_text() if log.exists() else ""

    @property
    def packages(self) -> str:
        """What apt-get was asked, a line a call."""
        log = self.folder / "apt.log"
        return log.read_text() if log.exists() else ""

    def command(self, name: str, body: str) -> Path:
        path = self.bin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + textwrap.dedent(body))
        path.chmod(0o755)
        return path

    def python(self, name: str, version: str, *, pip_exit: int = 0) -> Path:
        script = self.bin / name
        pretended = self.folder / f"{name}.py"
        pretended.write_text(
            PRETENDED_PYTHON.format(
                version=[int(part) for part in version.split(".")],
                log=str(self.folder / "pip.log"),
                ensurepip=str(self.ensurepip),
                script=str(script),
                pip_exit=pip_exit,
            )
        )
        return self.command(name, f'exec {sys.executable} {pretended} "$@"\n')

    def java(self, version: str, name: str = "java") -> Path:
        return self.command(name, f"echo 'openjdk version \"{version}\" 2024-01-16' >&2\n")

    def user(self, number: int) -> None:
        self.command("id", f"echo {number}\n")

    def apt_get(self, effect: str = "") -> None:
        self.command("apt-get", f'echo "$@" >> {self.folder / "apt.log"}\n{effect}\n')

    def run(
        self, *command: str | Path, cwd: Path = ROOT, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env={"PATH": str(self.bin), "HOME": str(self.folder), **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a user who is not root, ensurepip, and neither Python nor Java yet."""
    made = Machine(tmp_path / "machine")
    made.bin.mkdir(parents=True)
    made.ensurepip.touch()
    made.user(1000)
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, f"the set-up scripts need {tool}"
        os.symlink(found, made.bin / tool)
    return made
