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
    "ln",
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
import pathlib, shutil, sys

sys.version_info = tuple({version}) + ("final", 0)
machine = pathlib.Path({folder!r})
if not (machine / "ensurepip").exists():
    sys.modules["ensurepip"] = None
arguments = sys.argv[1:]
if arguments[0] == "-c":
    exec(arguments[1])
elif arguments[:2] == ["-m", "venv"]:
    inside = pathlib.Path(arguments[-1], "bin", "python")
    inside.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy({script!r}, inside)
    shutil.copy(machine / "uv", inside.with_name("uv"))
elif arguments[:3] == ["-m", "pip", "install"]:
    with (machine / "pip.log").open("a") as file:
        print(pathlib.Path(arguments[-1]).read_text(), *arguments[3:], file=file)
elif arguments[:4] == ["-m", "pip", "config", "list"]:
    print((machine / "pip.list").read_text())
"""

# Notes what it is asked; an environment has the interpreter that was named, or is python3
PRETENDED_UV = """\
echo "$UV_DEFAULT_INDEX $*" >>"{folder}/uv.log"
case "$*" in
    {fails}) exit 2 ;;
    venv*)
        for last; do
            if [ "$option" = --python ]; then python=$last; fi
            option=$last
        done
        mkdir -p "$last/bin"
        case $python in ">"*) python={folder}/bin/python3 ;; esac
        ln -sf "$(command -v "$python")" "$last/bin/python" ;;
esac
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
        """What pip was asked to install, a line a call, behind the requirements."""
        log = self.folder / "pip.log"
        return log.read_text() if log.exists() else ""

    @property
    def asked(self) -> list[str]:
        """What uv was asked, each with the index where it was to look."""
        log = self.folder / "uv.log"
        return log.read_text().splitlines() if log.exists() else []

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

    def python(self, name: str, version: str) -> Path:
        script = self.bin / name
        pretended = self.folder / f"{name}.py"
        pretended.write_text(
            PRETENDED_PYTHON.format(
                version=[int(part) for part in version.split(".")],
                folder=str(self.folder),
                script=str(script),
            )
        )
        return self.command(name, f'exec {sys.executable} -I -S {pretended} "$@"\n')

    def uv(self, fails: str = "nothing") -> None:
        """Have the uv that pip installs fail where it is asked what this pattern says."""
        pretended = PRETENDED_UV.format(folder=self.folder, fails=fails)
        self.command("../uv", pretended)

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
    made.uv()
    (made.folder / "pip.list").touch()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, f"the set-up scripts need {tool}"
        os.symlink(found, made.bin / tool)
    return made
