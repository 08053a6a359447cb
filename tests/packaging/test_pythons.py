"""`setup/pythons`: on which Pythons it runs the fast tests, and what it installs for them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Machine
from tests.packaging.test_lock import normalised

SCRIPT = ROOT / "setup" / "pythons"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "my pythons"


def test_each_python_that_is_found_is_tested(machine: Machine, folder: Path) -> None:
    own = machine.python("own", "3.11.2")
    machine.python("python3.13", "3.13.0")
    done = machine.run(SCRIPT, folder, own)
    assert done.returncode == 0, done.stderr
    told = [line.split(",")[0] for line in done.stdout.splitlines()]
    assert told == [
        f"Python 3.11: is the one of {own}",
        "Python 3.12: not found",
        "Python 3.13: the fast tests",
    ]
    assert [each.name for each in folder.iterdir()] == ["3.13"]


def test_a_python_of_pyenv_is_found(machine: Machine, folder: Path) -> None:
    own = machine.python("own", "3.11.2")
    inside = machine.folder / ".pyenv" / "versions" / "3.12.1" / "bin"
    inside.mkdir(parents=True)
    (inside / "python").symlink_to(machine.python("other", "3.12.1"))
    assert f"fast tests, with {inside / 'python'}" in machine.run(SCRIPT, folder, own).stdout


def test_the_pinned_packages_of_core_and_tests_are_installed(
    machine: Machine, folder: Path
) -> None:
    machine.python("python3.12", "3.12.1")
    machine.run(SCRIPT, folder, machine.python("own", "3.11.2"))
    assert "--require-hashes --requirement" in machine.installed
    lock = (folder / "3.12" / "requirements.lock").read_text()
    installed = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = [*described["project"]["dependencies"], *described["dependency-groups"]["test"]]
    assert {normalised(each) for each in asked} <= installed
    assert not installed & {"pyspark", "mypy"}


def test_an_environment_that_is_complete_is_kept(machine: Machine, folder: Path) -> None:
    machine.python("python3.12", "3.12.1")
    own = machine.python("own", "3.11.2")
    machine.run(SCRIPT, folder, own)
    before = machine.installed
    assert machine.run(SCRIPT, folder, own).returncode == 0
    assert machine.installed == before


def test_a_failed_installation_fails(machine: Machine, folder: Path) -> None:
    machine.python("python3.12", "3.12.1", pip_exit=1)
    assert machine.run(SCRIPT, folder, machine.python("own", "3.11.2")).returncode != 0


def test_failing_tests_fail(machine: Machine, folder: Path) -> None:
    machine.python("python3.12", "3.12.1")
    own = machine.python("own", "3.11.2")
    machine.run(SCRIPT, folder, own)
    inside = folder / "3.12" / "bin" / "python"
    inside.write_text("#!/bin/sh\nexit 1\n")
    assert machine.run(SCRIPT, folder, own).returncode == 1
