"""`examples/kafka_word_count.py` against a real broker: each line counts once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.kafka.broker import Broker
from trident.testing.servers.promised import Served

EXAMPLE = Path(__file__).parents[2] / "examples" / "kafka_word_count.py"


class Shell:
    """Runs the example in a folder, on a topic of the test's own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        servers = url.removeprefix("kafka://")
        self.options = ("--servers", servers, "--topic", f"lines-{uuid4().hex[:8]}")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(EXAMPLE), *arguments, *self.options],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> str:
        with self.start(*arguments) as process:
            out, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
        return out


@pytest.fixture
def shell(tmp_path: Path, kafka_broker: Served) -> Shell:
    # The first producer of a broker that has just started is told to try again, and logs it.
    broker = Broker(kafka_broker.url)
    broker.produce(broker.topic(), ["first"])
    return Shell(tmp_path, kafka_broker.url)


def test_what_is_written_is_counted_once_however_often_it_is_run(shell: Shell) -> None:
    shell.run("write", "the cat sat", "the dog ran")
    assert shell.run("count", "the", "cat", "--once").endswith("the 2  cat 1, each counted once.\n")
    shell.run("write", "the cow")
    assert "the 3  cat 1, each" in shell.run("count", "the", "cat", "--once")
    assert shell.run("query", "the", "cow") == "the 3  cow 1\n"


def test_a_count_that_is_killed_is_gone_on_with(shell: Shell) -> None:
    written = shell.run("write")
    with shell.start("count") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("batch"):
                break
        process.kill()
        process.communicate(timeout=60)
    shell.run("write")
    counted = shell.run("count", "--once").rpartition("\n")[0].splitlines()[-1]
    import pydoc_data.topics

    text = "\n".join(pydoc_data.topics.topics.values()).lower()
    the = sum(word == "the" for word in re.findall(r"[^\W\d_]+", text))
    assert counted.startswith(f"the {2 * the:,}  of ")
    assert written.startswith(f"{len(text.splitlines())} lines are in lines-")
