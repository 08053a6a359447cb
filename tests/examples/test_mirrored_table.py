"""`examples/mirrored_table.py` against a real broker: the mirror is what the source is."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.examples.conftest import Ended
from tests.kafka.broker import Broker
from trident.testing.servers.promised import Served

EXAMPLE = Path(__file__).parents[2] / "examples" / "mirrored_table.py"
DATA = Path("wordcount-data", "mirror")


class Shell:
    """Runs the example in a folder, on a topic of the test's own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        servers = url.removeprefix("kafka://")
        self.options = ("--servers", servers, "--topic", f"customers-{uuid4().hex[:8]}")

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

    def rows(self, file: str) -> list[tuple[Any, ...]]:
        """All customers in a file of SQLite."""
        with closing(sqlite3.connect(self.folder / DATA / file)) as database:
            return database.execute("SELECT * FROM customers ORDER BY id").fetchall()

    @property
    def source(self) -> list[tuple[Any, ...]]:
        """All customers of the source, each with his date as the mirror has it."""
        epoch = date(1970, 1, 1)
        return [
            (id, name, email, str(epoch + timedelta(days=joined)))
            for id, name, email, joined in self.rows("source.db")
        ]


@pytest.fixture
def shell(tmp_path: Path, kafka_broker: Served) -> Shell:
    # The first producer of a broker that has just started is told to try again, and logs it.
    broker = Broker(kafka_broker.url)
    broker.produce(broker.topic(), ["first"])
    return Shell(tmp_path, kafka_broker.url)


def test_the_mirror_is_what_the_source_is_also_after_a_kill(shell: Shell) -> None:
    shell.run("change", "5000")
    with shell.start() as mirroring:
        assert mirroring.stdout is not None
        for line in mirroring.stdout:
            if line.startswith("batch"):
                break
        mirroring.kill()
        mirroring.communicate(timeout=60)
    shell.run("change", "500")
    assert shell.run("--once").endswith(" batches are in the table customers, each once.\n")
    assert shell.rows("mirror.db") == shell.source


def test_spark_mirrors_the_same(shell: Shell, run_here: Callable[..., Ended]) -> None:
    shell.run("change", "500")
    done = run_here(EXAMPLE, "--spark", "--once", *shell.options)
    assert (done.code, done.errors) == (0, "")
    assert shell.rows("mirror.db") == shell.source
