"""``python -m trident run --restarts``: what is started again, and what is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli import counted
from trident.cli.main import PASSING, main

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(counted.PLACE, f"sqlite:{tmp_path}/counts.db")
    return tmp_path


def supervised(place: Path, name: str, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trident", "run", f"tests.cli.counted:{name}", "--json"]
    command += ["--checkpoint", str(place / "log"), "--trigger", "0.001", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    return map(json.loads, process.stdout)


def child_of(process: subprocess.Popen[str]) -> int:
    asked = ["ps", "-o", "pid=", "--ppid", str(process.pid)]
    return int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_a_run_that_is_killed_is_started_again_and_a_signal_ends_it_for_good(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with supervised(place, "endless", "--restarts", "2") as process:
        assert process.stderr is not None
        batches = told(process)
        next(batches)
        os.kill(child_of(process), signal.SIGKILL)
        line, killed = process.stderr.readline(), time.time()
        assert "it was killed by SIGKILL, and is started again in 1 s (1 of 2)" in line
        again = next(each for each in batches if each["at"] > killed)
        process.send_signal(signal.SIGTERM)
        last = [again, *batches][-1]["txid"]
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""
    assert main(["state", "get", "tests.cli.counted:endless/count", "dog"]) == 0
    assert capsys.readouterr().out == f"{last}\n"


@pytest.mark.slow
def test_a_store_that_is_away_is_a_cause_for_a_restart_until_there_were_enough(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(counted.PLACE, "redis://127.0.0.1:1/0")
    with supervised(place, "topology", "--restarts", "1", "--within", "60") as process:
        _, errors = process.communicate(timeout=PATIENCE)
    away, restart, away_again, end = errors.splitlines()
    assert "redis at 127.0.0.1:1: nothing listens there" in away
    assert away == away_again
    assert "it ended with 75, and is started again in 1 s (1 of 1)" in restart
    assert "it ended with 75; no restart is left (1 within 60 s)" in end
    assert process.returncode == PASSING == 75


@pytest.mark.slow
def test_what_the_program_does_wrong_is_no_cause_for_a_restart(place: Path) -> None:
    with supervised(place, "failing", "--restarts", "3") as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "no length of dog" in errors
    assert "started again" not in errors


@pytest.mark.slow
def test_a_run_ends_with_the_process_that_would_start_it_again(place: Path) -> None:
    with supervised(place, "endless", "--restarts", "3") as process:
        next(told(process))
        process.kill()
        process.communicate(timeout=PATIENCE)  # its output is closed when nobody runs any more


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--restarts 1", "--restarts without --checkpoint"),
        ("--within 60", "--within without --restarts"),
        ("--restarts -1 --checkpoint log", "--restarts and --within are numbers above 0"),
        ("--restarts 1 --within 0 --checkpoint log", "--restarts and --within are numbers above 0"),
    ],
)
def test_restarts_that_cannot_be_are_refused(
    words: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "tests.cli.counted:topology", *words.split()]) == 2
    assert problem in capsys.readouterr().err


def test_no_jvm_of_spark_submit_is_started_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    words = ["--restarts", "1", "--checkpoint", "log"]
    assert main(["run", "tests.cli.counted:topology", *words]) == 2
    assert "--restarts under spark-submit" in capsys.readouterr().err
