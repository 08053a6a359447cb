"""What commands do where they are interrupted, and where the terminal knows no Unicode."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT

TOPOLOGY = """
from trident import Count, FixedBatchSpout, TridentTopology

topology = TridentTopology()
lines = topology.newStream("zeilen-\u00e4\u2026", FixedBatchSpout("text string", 2, ["c\u00e4t"]))
lines.groupBy("text").persistentAggregate("sqlite:counts.db?prefix=n", Count(), "n")
"""
SLOW = """
import threading

print("importing", flush=True)
threading.Event().wait(60)
"""


def environment(**others: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}
    return {**kept, "PYTHONPATH": str(ROOT), **others}


def test_ctrl_c_while_the_topology_is_imported_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    with subprocess.Popen(
        [sys.executable, "-m", "trident", "explain", "slow:topology"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "importing\n"
        command.send_signal(signal.SIGINT)
        _, told = command.communicate(timeout=60)
    assert (command.returncode, told) == (130, "python -m trident explain: interrupted\n")


def test_ctrl_c_while_the_library_is_imported_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text("raise KeyboardInterrupt")  # comes before Python's own
    done = subprocess.run(
        [sys.executable, "-m", "trident", "backends"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (130, "python -m trident: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["explain", "words:topology"], "zeilen-"),
        (["run", "--trigger", "available", "words:topology"], "batch 1"),
        (["backends"], "redis"),
    ],
)
def test_commands_print_in_the_c_locale(words: list[str], printed: str, tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(TOPOLOGY, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "trident", *words],
        cwd=tmp_path,
        env=environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert printed.encode() in done.stdout + done.stderr
    assert b"Error" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [("run", "words:topology", "--spark", "local[1]"), ("chaos", "--state", "sqlite:", "--spark")],
    ids=lambda command: str(command[0]),
)
def test_a_command_without_java_says_so_at_once(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(TOPOLOGY)
    done = subprocess.run(
        [sys.executable, "-m", "trident", *command],
        cwd=tmp_path,
        env=environment(JAVA_HOME="/nonexistent"),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    assert "there is no /nonexistent/bin/java. Spark needs Java 17 or newer" in done.stderr
    assert len(done.stderr.splitlines()) <= 3
