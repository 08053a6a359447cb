"""Ctrl-C in a program that waits for its topology."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.spark.files import wait_for
from trident.backends import sqlite

ENGINES = [
    pytest.param("local", ["spouts"], id="local"),
    pytest.param("spark", ["spouts", "frames"], marks=pytest.mark.spark, id="spark"),
]


@contextmanager
def waiting(folder: Path, engine: str, groups: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """The program, with a batch of each group under way; in a group of its own, as a shell's."""
    (folder / "texts").mkdir()
    for number in (1, 2):
        (folder / "texts" / f"{number}.txt").write_text("a b")
    program = [sys.executable, "-m", "tests.spark.waiting", str(folder), engine]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        program, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            for group in groups:
                wait_for(folder / f"began {group}", 120)
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def counted(folder: Path, name: str) -> list[object]:
    state = sqlite.opaque(folder / f"{name}.db", name).makeState()
    try:
        return list(state.multiGet([("a",), ("b",)]))
    finally:
        state.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("engine", "groups"), ENGINES)
def test_ctrl_c_ends_a_program_after_the_batch_and_prints_nothing(
    tmp_path: Path, engine: str, groups: list[str]
) -> None:
    with waiting(tmp_path, engine, groups) as process:
        os.killpg(process.pid, signal.SIGINT)
        (tmp_path / "go on").touch()
        assert process.communicate(timeout=100) == ("", "")
        assert process.returncode == -signal.SIGINT
    for group in groups:
        assert counted(tmp_path, group) == [1, 1]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("engine", "groups"), ENGINES)
def test_a_second_ctrl_c_does_not_wait_for_the_batch(
    tmp_path: Path, engine: str, groups: list[str]
) -> None:
    with waiting(tmp_path, engine, groups) as process:
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                continue
        assert process.returncode == -signal.SIGINT
    (tmp_path / "go on").touch()
    for group in groups:
        assert counted(tmp_path, group) == [None, None]


@pytest.mark.spark
def test_a_session_that_is_stopped_before_its_run_leaves_few_lines(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.spark.early_stop", str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) <= 15, done.stderr
    assert "py4j" not in done.stderr
