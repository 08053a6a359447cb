"""`setup/environment`: which Python it takes, what it installs, and how it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Machine

SCRIPT = ROOT / "setup" / "environment"


@pytest.fixture
def env(tmp_path: Path) -> Path:
    return tmp_path / "my project" / ".venv"


def test_the_newest_python_is_taken_and_the_lock_installed(machine: Machine, env: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.python("python3.12", "3.12.1")
    done = machine.run(SCRIPT, env)
    assert done.returncode == 0, done.stderr
    assert "with python3.12 (3.12.1)" in done.stdout
    requirements, project = machine.installed.splitlines()
    assert "--require-hashes --requirement requirements.lock" in requirements
    assert project.endswith("--editable .")


def test_temporary_files_stay_inside_the_environment(machine: Machine, env: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.run(SCRIPT, env)
    assert machine.installed.startswith(f"TMPDIR={env}/tmp ")
    assert not (env / "tmp").exists()


def test_an_old_python_is_refused_by_version(machine: Machine, env: Path) -> None:
    machine.python("python3", "3.10.13")
    done = machine.run(SCRIPT, env)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer. python3 is 3.10.13." in done.stderr
    assert "make PYTHON=" in done.stderr
    assert not env.exists()


def test_an_old_python_named_by_hand_is_refused(machine: Machine, env: Path) -> None:
    machine.python("python3", "3.12.1")
    old = machine.python("python2", "2.7.18")
    done = machine.run(SCRIPT, env, PYTHON=str(old))
    assert done.returncode == 1
    assert f"{old} is 2.7.18." in done.stderr


def test_no_python_at_all_is_said(machine: Machine, env: Path) -> None:
    done = machine.run(SCRIPT, env)
    assert done.returncode == 1
    assert "No python3 was found." in done.stderr


def test_a_name_that_does_not_run_is_passed_over(machine: Machine, env: Path) -> None:
    machine.command("python3.13", "echo 'not installed' >&2; exit 127\n")
    machine.python("python3", "3.11.2")
    done = machine.run(SCRIPT, env)
    assert done.returncode == 0, done.stderr
    assert "with python3 (3.11.2)" in done.stdout
    assert "not installed" not in done.stderr


def test_without_ensurepip_a_user_is_told_the_package(machine: Machine, env: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.ensurepip.unlink()
    machine.apt_get()
    done = machine.run(SCRIPT, env)
    assert done.returncode == 1
    assert "sudo apt-get install python3-venv" in done.stderr
    assert "python3.11-venv" in done.stderr
    assert machine.packages == ""


def test_without_ensurepip_root_installs_it(machine: Machine, env: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.ensurepip.unlink()
    machine.user(0)
    machine.apt_get(f'case "$*" in *python3.11-venv*) touch {machine.ensurepip} ;; esac')
    done = machine.run(SCRIPT, env)
    assert done.returncode == 0, done.stderr
    assert "python3.11-venv" in machine.packages
    assert "requirements.lock" in machine.installed


def test_an_installation_that_does_not_help_is_named(machine: Machine, env: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.ensurepip.unlink()
    machine.user(0)
    machine.apt_get("exit 100")
    done = machine.run(SCRIPT, env)
    assert done.returncode == 1
    assert "python3-venv" in done.stderr


def test_an_environment_that_works_is_kept(machine: Machine, env: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.run(SCRIPT, env)
    (env / "mark").touch()
    done = machine.run(SCRIPT, env)
    assert done.returncode == 0
    assert "making" not in done.stdout
    assert (env / "mark").exists()


def test_a_failed_installation_fails(machine: Machine, env: Path) -> None:
    machine.python("python3", "3.11.2", pip_exit=1)
    done = machine.run(SCRIPT, env)
    assert done.returncode == 1
    assert "--editable" not in machine.installed
