"""The scripts that make environments: what they install, and how they refuse."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Machine

pytestmark = pytest.mark.slow

MADE = "venv --quiet --clear --python"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what sets up, as uv is installed beside it."""
    folder = tmp_path / "my project"
    shutil.copytree(ROOT / "setup", folder / "setup")
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_uv_is_installed_once_as_the_lock_pins_it(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.11.2")
    for _ in range(2):
        done = machine.run("setup/uv", "--version", cwd=project)
        assert done.returncode == 0, done.stderr
    pinned, *options = machine.installed.split("--quiet")
    assert pinned.startswith("uv==")
    assert pinned.count("==") == 1
    assert "--hash=sha256:" in pinned
    assert len(options) == 1
    assert "--require-hashes" in options[0]
    assert machine.asked == [" --version"] * 2


def test_an_interrupted_installation_of_uv_is_not_taken_for_done(
    machine: Machine, project: Path
) -> None:
    machine.python("python3", "3.11.2")
    machine.run("setup/uv", "--version", cwd=project)
    (project / ".uv" / "complete").unlink()
    before = machine.installed
    machine.run("setup/uv", "--version", cwd=project)
    assert machine.installed == before * 2


@pytest.mark.parametrize("pip_has", ["of its variable", "of its file"])
@pytest.mark.parametrize("uv_has", ["", "of uv's variable"])
def test_uv_looks_where_pip_does(
    machine: Machine, project: Path, pip_has: str, uv_has: str
) -> None:
    machine.python("python3", "3.11.2")
    listed = ["global.cert='/a b'", "global.index-url='of its file'"]
    if pip_has == "of its variable":
        listed.insert(0, f":env:.index-url='{pip_has}'")
    (machine.folder / "pip.list").write_text("\n".join(listed))
    machine.run("setup/uv", "--version", cwd=project, UV_DEFAULT_INDEX=uv_has)
    assert machine.asked == [f"{uv_has or pip_has} --version"]


def test_without_ensurepip_a_user_is_told_the_package(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.ensurepip.unlink()
    machine.apt_get()
    done = machine.run("setup/environment", ".venv", cwd=project)
    assert done.returncode == 1
    assert "sudo apt-get install python3-venv" in done.stderr
    assert machine.packages == ""


@pytest.mark.parametrize("helps", [True, False])
def test_without_ensurepip_root_installs_it(machine: Machine, project: Path, helps: bool) -> None:
    machine.python("python3", "3.11.2")
    machine.ensurepip.unlink()
    machine.user(0)
    effect = f"touch {machine.ensurepip}" if helps else "exit 100"
    machine.apt_get(f'case "$*" in *python3-venv*) {effect} ;; esac')
    done = machine.run("setup/environment", ".venv", cwd=project)
    assert "python3-venv" in machine.packages
    assert (done.returncode == 0) == helps
    assert ("sudo apt-get install python3-venv" in done.stderr) != helps


def test_no_python_at_all_is_said(machine: Machine, project: Path) -> None:
    done = machine.run("setup/environment", ".venv", cwd=project)
    assert done.returncode == 1
    assert "No python3 was found." in done.stderr


def test_the_lock_and_the_project_are_installed(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.11.2")
    done = machine.run("setup/environment", ".venv", cwd=project)
    assert done.returncode == 0, done.stderr
    made, lock, own, cache = (line.strip() for line in machine.asked)
    assert made == f"{MADE} >=3.11 .venv"
    assert lock.endswith("--python .venv --require-hashes requirements.lock")
    assert own.endswith("--python .venv --no-deps --no-build-isolation --editable .")
    assert cache == "cache clean --quiet pyspark"


def test_a_python_can_be_named(machine: Machine, project: Path) -> None:
    named = machine.python("mine", "3.12.1")
    done = machine.run("setup/environment", ".venv", cwd=project, PYTHON=str(named))
    assert done.returncode == 0, done.stderr
    assert machine.asked[0].strip() == f"{MADE} {named} .venv"


def test_a_python_that_is_too_old_is_refused(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.10.13")
    machine.uv(fails="venv*")
    done = machine.run("setup/environment", ".venv", cwd=project)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_an_environment_that_works_is_kept(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.11.2")
    for _ in range(2):
        assert machine.run("setup/environment", ".venv", cwd=project).returncode == 0
    assert len([asked for asked in machine.asked if MADE in asked]) == 1


def test_a_failed_installation_fails(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.uv(fails="*requirements.lock")
    assert machine.run("setup/environment", ".venv", cwd=project).returncode != 0
    assert "--editable" not in machine.asked[-1]


class TestOtherPythons:
    def test_each_that_is_found_is_tested(self, machine: Machine, project: Path) -> None:
        own = machine.python("python3", "3.11.2")
        machine.python("python3.13", "3.13.0")
        done = machine.run("setup/pythons", "others", own, cwd=project)
        assert done.returncode == 0, done.stderr
        told = [line.split(",")[0] for line in done.stdout.splitlines()]
        assert told == [
            f"Python 3.11: is the one of {own}",
            "Python 3.12: not found",
            "Python 3.13: the fast tests",
        ]
        made, installed = machine.asked
        assert made.strip() == f"{MADE} python3.13 others/3.13"
        assert "--constraint others/3.13/pinned --requirement pyproject.toml" in installed

    def test_one_of_pyenv_is_found(self, machine: Machine, project: Path) -> None:
        own = machine.python("python3", "3.11.2")
        inside = machine.folder / ".pyenv" / "versions" / "3.12.1" / "bin"
        inside.mkdir(parents=True)
        (inside / "python").symlink_to(machine.python("other", "3.12.1"))
        told = machine.run("setup/pythons", "others", own, cwd=project).stdout
        assert f"fast tests, with {inside / 'python'}" in told

    def test_an_environment_that_is_complete_is_kept(self, machine: Machine, project: Path) -> None:
        own = machine.python("python3", "3.11.2")
        machine.python("python3.12", "3.12.1")
        for _ in range(2):
            machine.run("setup/pythons", "others", own, cwd=project)
        assert len(machine.asked) == 2

    def test_a_failed_installation_fails(self, machine: Machine, project: Path) -> None:
        own = machine.python("python3", "3.11.2")
        machine.python("python3.12", "3.12.1")
        machine.uv(fails="pip*")
        assert machine.run("setup/pythons", "others", own, cwd=project).returncode != 0

    def test_failing_tests_fail(self, machine: Machine, project: Path) -> None:
        own = machine.python("python3", "3.11.2")
        machine.python("python3.12", "3.12.1")
        machine.run("setup/pythons", "others", own, cwd=project)
        inside = project / "others" / "3.12" / "bin" / "python"
        inside.unlink()
        inside.write_text("#!/bin/sh\nexit 1\n")
        inside.chmod(0o755)
        assert machine.run("setup/pythons", "others", own, cwd=project).returncode == 1


class TestOtherSparks:
    @pytest.fixture(autouse=True)
    def connect(self, project: Path) -> None:
        for version in ("3.5.9", "4.0.5"):
            jars = project / "sparks" / version / "lib" / "pyspark" / "jars"
            jars.mkdir(parents=True)
            (jars / "spark-connect_2.13.jar").touch()

    def test_what_is_chosen_is_there(self) -> None:
        chosen = re.findall(r"(tests/\S+\.py)(?:::(\w+))?", (ROOT / "setup" / "sparks").read_text())
        assert chosen
        for path, name in chosen:
            assert f"def {name}" in (ROOT / path).read_text()

    def test_each_has_an_environment_with_the_pins_of_all_else(
        self, machine: Machine, project: Path
    ) -> None:
        own = machine.python("python3", "3.11.2")
        done = machine.run("setup/sparks", "sparks", own, cwd=project)
        assert done.returncode == 0, done.stderr
        told = [line.split(":")[0] for line in done.stdout.splitlines()]
        assert told == ["Spark 3.5.9", "Spark 4.0.5"]
        made, installed, cleaned, *_ = map(str.strip, machine.asked)
        assert made == f"{MADE} {own} sparks/3.5.9"
        assert installed.endswith("--extra spark pyspark==3.5.9")
        assert cleaned == "cache clean --quiet pyspark"
        pinned = (project / "sparks" / "3.5.9" / "pinned").read_text()
        assert "\npyarrow==" in pinned
        assert "\npyspark==" not in pinned
        assert pinned.count("==") == (project / "requirements.lock").read_text().count("==") - 1

    def test_failing_tests_fail(self, machine: Machine, project: Path) -> None:
        own = machine.python("python3", "3.11.2")
        machine.run("setup/sparks", "sparks", own, cwd=project)
        inside = project / "sparks" / "3.5.9" / "bin" / "python"
        inside.unlink()
        inside.write_text("#!/bin/sh\nexit 1\n")
        inside.chmod(0o755)
        assert machine.run("setup/sparks", "sparks", own, cwd=project).returncode == 1
