"""Follows a page as its reader does: writes its files, runs its code and its commands, and compares
what is printed with what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.packaging.conftest import ROOT
from trident.cli.main import main

FENCE = re.compile(
    r"^(?P<mark> *<!-- not run: [^>]+ -->\n)?(?P<indent> *)```(?P<language>\w+)\n"
    r"(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"# (\w+\.py)\n")
_SHELL = ("mkdir", "cat", "echo")
"""What a shell does of a page's commands; of the others only Python is started."""
_TOOLS = ("pip", "curl", "redis-cli", "pkill", "rm")
"""What is for the reader only."""


class Walk:
    """One page; `instead` is what stands in the test for places of the page."""

    def __init__(self, page: Path, folder: Path, instead: Mapping[str, str] | None = None) -> None:
        self.page = page
        self.text = page.read_text()
        self.folder = folder
        self.instead = instead or {}
        self.program: dict[str, Any] = {"__name__": "guide"}
        self.printed = ""

    def go(self) -> None:
        """From its first block to its last, in the folder, which is the current one."""
        for found in FENCE.finditer(self.text):
            body = dedent(found["body"])
            if found["mark"] is None and found["language"] == "text":
                self.compare(body)
            elif found["mark"] is None and found["language"] in ("python", "sh"):
                self.printed = ""
                for old, new in self.instead.items():
                    body = body.replace(old, new)
                if found["language"] == "sh":
                    self.commands(body)
                elif (file := _FILE.match(body)) is not None:
                    (self.folder / file[1]).write_text(body)
                else:
                    line = self.text.count("\n", 0, found.start("body"))
                    self.code("\n" * line + body)

    def compare(self, shown: str) -> None:
        """Refuse what the page shows of the block before, if that has printed something else."""
        assert told(self.printed) == told(shown), f"{self.page.name} shows\n{shown}"

    def code(self, code: str) -> None:
        """Run a block; those before it are of the same program."""
        output = StringIO()
        with redirect_stdout(output), self.modules():
            exec(compile(code, str(self.page), "exec", dont_inherit=True), self.program)
        self.printed = output.getvalue()

    def commands(self, body: str) -> None:
        if body.startswith(_SHELL) and "<<" in body:
            body, rest = re.findall(r"(.*\nEND\n)(.*)", body, re.DOTALL)[0]
            subprocess.run(["sh", "-c", body], check=True, cwd=self.folder)
            body = rest
        for line in body.splitlines():
            match shlex.split(line, comments=True):
                case ["export", setting]:
                    os.environ.update([setting.split("=", 1)])
                case ["python", "-m", "trident", *words]:
                    self.command(words)
                case ["python", *words]:
                    self.printed += self.python(*words)
                case [tool, *_] if tool in _SHELL:
                    subprocess.run(["sh", "-c", line], check=True, cwd=self.folder)
                case [tool, *_] as words:
                    assert tool in _TOOLS, f"{self.page.name}: nothing runs {line!r}"
                    self.tool(words)

    def tool(self, words: list[str]) -> None:
        """Do what another tool does, where a test can."""

    def command(self, words: list[str]) -> None:
        """Run a command of ours in this process."""
        output = StringIO()
        with redirect_stdout(output), self.modules():
            status = main(words)
        # What a doctor finds is a matter of the machine.
        assert status == 0 or words[0] == "doctor", output.getvalue()
        self.printed += output.getvalue()

    def python(self, *words: str) -> str:
        """What a process of its own prints; it may kill itself."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode in (0, -9), done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def modules(self) -> Iterator[None]:
        """Find the page's own files, as they are now."""
        sys.path.insert(0, str(self.folder))
        try:
            yield
        finally:
            sys.path.remove(str(self.folder))
            for file in self.folder.glob("*.py"):
                sys.modules.pop(file.stem, None)


def told(text: str) -> str:
    """A text without the seconds that something took."""
    return re.sub(r"\d+\.\d\d s\b", "0.00 s", text)
