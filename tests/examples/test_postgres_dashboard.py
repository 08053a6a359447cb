"""`examples/postgres_dashboard.py` against a real server: what the SQL client finds is right."""

from __future__ import annotations

import keyword
import os
import pydoc_data.topics
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from uuid import uuid4

import pytest

from tests.examples.conftest import Ended
from trident.testing.servers.process import free_port
from trident.testing.servers.promised import Served

EXAMPLE = Path(__file__).parents[2] / "examples" / "postgres_dashboard.py"
TEXTS = list(pydoc_data.topics.topics.values())
TEXTS_A_BATCH = 4
TYPES = "int float str list tuple dict set bytes".split()

Found = dict[str, int]


@dataclass(frozen=True)
class Screen:
    """What one process printed."""

    code: int
    out: str
    errors: str

    @property
    def found(self) -> list[Found]:
        """What the client found, one after the other."""
        return [kinds_in(line) for line in re.findall("an SQL client finds: (.+)", self.out)]

    @property
    def end(self) -> tuple[int, Found]:
        """How many batches there were, and what was found at the end."""
        told = re.search(r"^(\d+) batches, each counted once: (.+)$", self.out, re.MULTILINE)
        assert told is not None, self.out + self.errors
        return int(told[1]), kinds_in(told[2])


def kinds_in(text: str) -> Found:
    pairs = re.findall(r"(keyword|type) ([\d,]+)", text)
    return {kind: int(count.replace(",", "")) for kind, count in pairs}


def truth(batches: int) -> Found:
    """What there is to find after as many whole batches; the last one of a cycle is shorter."""
    words: Counter[str] = Counter()
    starts = range(0, len(TEXTS), TEXTS_A_BATCH)
    for start in islice(cycle(starts), batches):
        for text in TEXTS[start : start + TEXTS_A_BATCH]:
            words.update(re.findall(r"[^\W\d_]+", text.lower()))
    keywords = {word.lower() for word in keyword.kwlist}
    sums = {
        "keyword": sum(words[word] for word in keywords),
        "type": sum(words[word] for word in TYPES),
    }
    return {kind: count for kind, count in sums.items() if count}


def start(folder: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(EXAMPLE), *arguments, "--url", url],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder: Path, url: str, *arguments: str) -> Screen:
    with start(folder, url, *arguments) as process:
        out, errors = process.communicate(timeout=240)
    return Screen(process.returncode, out, errors)


@pytest.fixture
def url(postgres_server: Served) -> str:
    """A place of the test's own on the server."""
    return f"{postgres_server.url}?prefix=dashboard{uuid4().hex}"


def test_an_sql_client_finds_whole_batches_only_and_a_later_run_goes_on(
    url: str, tmp_path: Path
) -> None:
    first = run(tmp_path, url, "--local", "--until", "3")
    assert first.errors == ""
    batches, found = first.end
    assert batches >= 3
    assert found == truth(batches)
    wholes = [truth(number) for number in range(batches + 1)]
    assert first.found
    assert all(each in wholes for each in first.found)
    assert kinds_in(run(tmp_path, url, "show").out) == found

    later, found = run(tmp_path, url, "--local", "--until", str(batches + 1)).end
    assert later > batches
    assert found == truth(later)


def test_spark_counts_the_same(url: str, run_here: Callable[..., Ended]) -> None:
    screen = Screen(*run_here(EXAMPLE, "--url", url, "--until", "3"))
    assert screen.code == 0, screen.errors
    assert screen.errors == ""
    batches, found = screen.end
    assert found == truth(batches)


def test_without_a_server_it_says_how_to_start_one(tmp_path: Path) -> None:
    port = free_port()
    screen = run(tmp_path, f"postgresql://127.0.0.1:{port}/postgres", "--local")
    assert screen.code == 1
    assert f"postgresql at 127.0.0.1:{port}" in screen.errors
    assert "apt-get install postgresql" in screen.errors
    assert "Traceback" not in screen.errors
    shown = run(tmp_path, f"postgresql://127.0.0.1:{port}/postgres", "show")
    assert shown.code == 1
    assert "Traceback" not in shown.errors
