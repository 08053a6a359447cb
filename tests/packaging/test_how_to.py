"""The tutorials, the how-tos and the notebook: what they tell to do is done, and prints what they
show."""

from __future__ import annotations

import ast
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest

from tests.packaging.conftest import ROOT
from tests.packaging.walk import FENCE, Walk
from trident.testing.servers.process import free_port
from trident.testing.servers.promised import Served

DOCS = ROOT / "docs"
ON_REDIS = DOCS / "tutorials" / "words-on-redis.md"
NOTEBOOK = ROOT / "examples" / "quickstart.ipynb"
SLOW = ("your-own-store.md", "test.md")
"""Pages whose commands start pytest."""


def pages() -> Iterator[Any]:
    for page in sorted([*DOCS.glob("tutorials/*.md"), *DOCS.glob("how-to/*.md")]):
        if page != ON_REDIS:
            marks = [pytest.mark.spark] if "trident.spark" in page.read_text() else []
            marks += [pytest.mark.slow] if page.name in SLOW else []
            yield pytest.param(page, id=f"{page.parent.name}/{page.stem}", marks=marks)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """A page may set up the library's logging."""
    logger = logging.getLogger("trident")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers


@pytest.mark.parametrize("page", [*pages()])
def test_a_page_does_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    with patch.dict(os.environ):
        Walk(page, tmp_path).go()


def test_a_how_to_is_at_most_two_screens() -> None:
    for page in DOCS.glob("how-to/*.md"):
        text = FENCE.sub("", page.read_text())
        assert len(text.splitlines()) <= 80, page.name


class OnRedis(Walk):
    """The tutorial whose program runs in a second terminal; its numbers are others each time."""

    running: subprocess.Popen[str] | None = None

    def tool(self, words: list[str]) -> None:
        match words:
            case ["pkill", "-9", *_]:
                assert self.running is not None
                self.running.kill()
                self.running.communicate()
                self.running = None
            case ["redis-cli", "get", key]:
                _, prefix = self.instead["prefix=count"].split("=")
                with redis_client(self.instead["redis://localhost:6379"]) as client:
                    self.printed += client.get(key.replace("count", prefix)).decode() + "\n"

    def command(self, words: list[str]) -> None:
        if words[0] == "drpc":
            super().command(words)
            return
        if words[0] != "state" or words[1] == "drop":
            self.stop()
        if words[0] in ("run", "serve"):
            free = [] if words[0] == "run" else ["--port", "0", "--thrift-port", "0"]
            self.running = subprocess.Popen(
                [sys.executable, "-m", "trident", *words, *free],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                text=True,
            )
            while "Ctrl-C" not in self.printed:
                self.read()
            return
        super().command(words)
        found = re.search(r"^(\d+)\n(?s:.*)batch (\d+) is committed", self.printed)
        if words[1] == "info":
            assert found is not None, self.printed
            assert int(found[1]) == 2 * int(found[2])

    def python(self, *words: str) -> str:
        self.stop()
        return super().python(*words)

    def compare(self, shown: str) -> None:
        """Each line that is shown comes, whatever its numbers; a kill within a batch adds words."""
        if shown.startswith("stopping"):
            self.printed += self.stop()
        for line in map(numberless, shown.splitlines()):
            while not re.search(f"^{re.escape(line)}", numberless(self.printed), re.MULTILINE):
                self.read()

    def read(self) -> None:
        """Wait for a line of the program."""
        assert self.running is not None, self.printed
        assert self.running.stdout is not None
        line = self.running.stdout.readline()
        assert line, self.printed
        self.printed += line

    def stop(self) -> str:
        """Press Ctrl-C where the program runs, and return what it says then."""
        if self.running is None:
            return ""
        self.running.send_signal(signal.SIGINT)
        said, _ = self.running.communicate(timeout=60)
        assert self.running.returncode == 0
        self.running = None
        return said


def redis_client(url: str) -> Any:
    import redis

    return redis.Redis.from_url(url)


def numberless(text: str) -> str:
    return re.sub(r"\d+(\.\d+)*", "N", text)


def test_words_are_counted_on_redis_though_killed(
    redis_server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    there = {
        "redis://localhost:6379": redis_server.url,
        "prefix=count": f"prefix=tutorial{uuid4().hex}",
        "3774": str(free_port()),
        "--trigger 0.5": "--trigger 0.02",
    }
    walk = OnRedis(ON_REDIS, tmp_path, there)
    try:
        walk.go()
    finally:
        if walk.running is not None:
            walk.running.kill()


def test_the_notebook_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(NOTEBOOK.read_text())["cells"], 1):
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"]))
        last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
        printed, value = StringIO(), None
        with redirect_stdout(printed):
            exec(compile(body, f"cell {number}", "exec"), program)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), program)
        assert "".join(cell["outputs"][0]["text"] if cell["outputs"] else []) == printed.getvalue()
        if value is not None:  # it is shown as HTML, which the notebook doesn't keep
            assert "text/html" in value._repr_mimebundle_()
