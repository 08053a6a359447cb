"""The Makefile: what it lists, and that only a set-up that ended counts as one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Machine
from trident.testing.servers.process import QUICK

MAKE = shutil.which("make")

pytestmark = pytest.mark.skipif(MAKE is None, reason="make is not installed")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    shutil.copytree(ROOT / "setup", folder / "setup")
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    servers = Path("trident", "testing", "servers")
    (folder / servers).mkdir(parents=True)
    for name in ("hbase", "hdfs", "kafka", "s3a", "spark_kafka"):
        shutil.copy(ROOT / servers / f"{name}_jars.xml", folder / servers)
    return folder


def test_help_is_the_default_and_lists_every_target(machine: Machine, project: Path) -> None:
    listed = machine.run(str(MAKE), cwd=project).stdout
    for target in re.findall(r"^([a-z]+):.*##", (project / "Makefile").read_text(), re.MULTILINE):
        assert re.search(rf"make {target} +\w", listed), target
    for target in ("wordcount", "test", "quick", "bench", "lint", "typecheck", "lock", "clean"):
        assert f"make {target} " in listed


def test_a_failed_set_up_is_not_taken_for_done(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.uv(fails="*requirements.lock")
    assert machine.run(str(MAKE), "environment", cwd=project).returncode != 0
    assert not (project / ".venv" / "complete").exists()

    shutil.rmtree(project / ".uv")
    machine.uv()
    assert machine.run(str(MAKE), "environment", cwd=project).returncode == 0
    assert (project / ".venv" / "complete").exists()


def test_a_set_up_that_is_done_is_not_repeated(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.run(str(MAKE), "environment", cwd=project)
    before = machine.asked
    assert machine.run(str(MAKE), "environment", cwd=project).returncode == 0
    assert machine.asked == before


def test_an_interpreter_can_be_named(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.9.2")
    mine = machine.python("mine", "3.12.1")
    done = machine.run(str(MAKE), "environment", f"PYTHON={mine}", cwd=project)
    assert done.returncode == 0, done.stderr
    assert f"--python {mine} .venv" in machine.asked[0]


def test_tests_run_without_servers(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.java("17.0.15")
    done = machine.run(str(MAKE), "test", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "sudo apt-get install" in done.stderr


def test_tests_do_not_run_without_servers_in_ci(machine: Machine, project: Path) -> None:
    machine.python("python3", "3.11.2")
    machine.java("17.0.15")
    done = machine.run(str(MAKE), "test", cwd=project, CI="true")
    assert done.returncode != 0
    assert "redis-server" in done.stderr


def test_a_quick_run_needs_neither_servers_nor_java(machine: Machine, project: Path) -> None:
    planned = machine.run(str(MAKE), "--dry-run", "quick", cwd=project).stdout
    assert f"{QUICK}=1 JAVA_HOME=/nonexistent" in planned
    assert '-m "not spark and not slow"' in planned
    assert "setup/servers" not in planned
    assert "setup/java" not in planned


def test_style_and_types_need_neither_servers_nor_java(machine: Machine, project: Path) -> None:
    planned = machine.run(str(MAKE), "--dry-run", "lint", "typecheck", cwd=project).stdout
    assert "ruff" in planned
    assert "setup/servers" not in planned
    assert "setup/java" not in planned
