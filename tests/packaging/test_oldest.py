"""`setup/oldest`: which versions of drivers are the oldest, and that tests run with them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Machine

SCRIPT = ROOT / "setup" / "oldest"
PINS = re.findall(r"^(\S+)==(\S+) --hash", SCRIPT.with_suffix(".lock").read_text(), re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "my oldest"


def test_what_is_pinned_is_the_oldest_that_is_allowed() -> None:
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = described["project"]["optional-dependencies"]
    assert PINS
    for name, version in PINS:
        [asked] = [each for each in extras[name] if each.startswith(name)]
        bounds = re.search(r">=([\d.]+),<\d+$", asked)
        assert bounds, f"{asked} allows versions that nobody has tried"
        assert f"{version}.".startswith(f"{bounds[1]}.")


def test_the_oldest_are_imported_before_the_newest(machine: Machine, folder: Path) -> None:
    python = machine.command(
        "own",
        f"""\
        case "$*" in
        *install*) mkdir "{folder}" && echo "$@" >> "{machine.folder}/pip.log" ;;
        *) echo "$PYTHONPATH: $@" ;;
        esac
        """,
    )
    done = machine.run(SCRIPT, folder, python)
    assert done.returncode == 0, done.stderr
    [said, run] = done.stdout.splitlines()
    assert said == "the tests of Redis with redis==6.0.0"
    assert run.startswith(f"{folder}:.: -m pytest")
    assert "tests/backends/test_redis_connections.py" in run
    assert f"--require-hashes --target {folder} --requirement" in machine.installed

    machine.run(SCRIPT, folder, python)
    assert len(machine.installed.splitlines()) == 1


def test_a_failed_installation_fails(machine: Machine, folder: Path) -> None:
    own = machine.command("own", 'case "$*" in *install*) exit 1 ;; esac\n')
    assert machine.run(SCRIPT, folder, own).returncode != 0


def test_failing_tests_fail(machine: Machine, folder: Path) -> None:
    body = f'case "$*" in *install*) mkdir "{folder}" ;; *) exit 1 ;; esac\n'
    assert machine.run(SCRIPT, folder, machine.command("own", body)).returncode == 1
