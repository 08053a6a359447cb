"""`examples/redis_word_count.py` against a real server: what every process finds is right."""

from __future__ import annotations

import os
import pydoc_data.topics
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from tests.examples.conftest import Ended
from trident.testing.servers.process import free_port
from trident.testing.servers.promised import Served

EXAMPLE = Path(__file__).parents[2] / "examples" / "redis_word_count.py"
ASKED = ("the", "of", "python")
TEXTS = list(pydoc_data.topics.topics.values())
TEXTS_A_BATCH = 4

Counts = tuple[int, ...]


@dataclass(frozen=True)
class Screen:
    """What one process printed."""

    code: int
    out: str
    errors: str

    @property
    def found(self) -> list[Counts]:
        """What the second process found, one after the other."""
        return [counts_in(line) for line in re.findall("another process finds: (.+)", self.out)]

    @property
    def end(self) -> tuple[int, Counts]:
        """How many batches there were, and what was counted at the end."""
        told = re.search(r"^(\d+) batches, each counted once: (.+)$", self.out, re.MULTILINE)
        assert told is not None, self.out + self.errors
        return int(told[1]), counts_in(told[2])


def counts_in(text: str) -> Counts:
    pairs = re.findall(r"(\w+) ([\d,]+)", text)
    assert tuple(word for word, _ in pairs) == ASKED
    return tuple(int(count.replace(",", "")) for _, count in pairs)


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


def truth(batches: int) -> Counts:
    """What there is to count in as many whole batches."""
    words: Counter[str] = Counter()
    for number in range(batches * TEXTS_A_BATCH):
        words.update(re.findall(r"[^\W\d_]+", TEXTS[number % len(TEXTS)].lower()))
    return tuple(words[word] for word in ASKED)


@pytest.fixture
def url(redis_server: Served) -> Iterator[str]:
    """A place of the test's own on the server."""
    import redis

    prefix = f"test-{uuid4().hex}"
    yield f"{redis_server.url}/0?prefix={prefix}"
    with redis.Redis.from_url(redis_server.url) as client:
        for key in client.scan_iter(match=f"{prefix}*"):
            client.delete(key)


def test_another_process_finds_whole_batches_only(url: str, tmp_path: Path) -> None:
    first = run(tmp_path, url, "--local", "--until", "3")
    assert first.errors == ""
    batches, counted = first.end
    assert batches >= 3
    assert counted == truth(batches)
    assert first.found[-1] == counted
    assert set(first.found) <= {truth(number) for number in range(batches + 1)}
    assert counts_in(run(tmp_path, url, "query", *ASKED).out) == counted

    again = run(tmp_path, url, "--local", "--until", str(batches + 1))
    assert again.end == (batches + 1, truth(batches + 1))


def test_a_run_that_is_killed_is_gone_on_with(url: str, tmp_path: Path) -> None:
    with start(tmp_path, url, "--local") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "another process finds" in line and any(counts_in(line.partition(": ")[2])):
                break
        process.kill()
        process.communicate(timeout=60)  # the second process ends as well
    batches, counted = run(tmp_path, url, "--local", "--until", "6").end
    assert batches >= 6
    assert counted == truth(batches)


def test_spark_counts_the_same(url: str, run_here: Callable[..., Ended]) -> None:
    screen = Screen(*run_here(EXAMPLE, "--url", url, "--until", "3"))
    assert screen.code == 0, screen.errors
    assert screen.errors == ""
    batches, counted = screen.end
    assert counted == truth(batches)
    assert set(screen.found) <= {truth(number) for number in range(batches + 1)}


def test_without_a_server_it_says_within_seconds_how_to_start_one(tmp_path: Path) -> None:
    port = free_port()
    started = time.monotonic()
    screen = run(tmp_path, f"redis://127.0.0.1:{port}/0")
    assert time.monotonic() - started < 5  # 3 for the server, the rest for Python to start
    assert screen.code == 1
    assert f"redis at 127.0.0.1:{port}" in screen.errors
    assert "redis-server" in screen.errors
    assert "Traceback" not in screen.errors
