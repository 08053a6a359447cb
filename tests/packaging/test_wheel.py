"""The source distribution is whole; the wheel of it has each file, and works when installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import trident
from tests.packaging.conftest import ROOT
from trident.testing.servers.redis import RedisServer

pytestmark = pytest.mark.slow

IMPORT_FOLDERS = {"trident": "trident", "states": "trident/states", "backends": "trident/backends"}


def packaged_files() -> Iterator[str]:
    """The files that belong in a wheel, by the path of their import name."""
    for folder, name in IMPORT_FOLDERS.items():
        for at, folders, files in os.walk(ROOT / folder):  # walk does not follow the links
            folders[:] = [below for below in folders if below != "__pycache__"]
            for file in files:
                yield f"{name}/{(Path(at) / file).relative_to(ROOT / folder).as_posix()}"


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    # What the caller's path leads to would count as installed.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source distribution built from a copy: the build leaves files behind."""
    copy = tmp_path_factory.mktemp("source") / "project"
    copy.mkdir()
    for file in ROOT.glob("*.*"):
        if file.is_file() and not file.name.startswith("."):
            shutil.copy(file, copy)
    shutil.copy(ROOT / "LICENSE", copy)
    for folder in (*IMPORT_FOLDERS, "docs", "examples"):
        shutil.copytree(
            ROOT / folder,
            copy / folder,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    out = tmp_path_factory.mktemp("built")
    build = f"import setuptools.build_meta as made; made.build_sdist({str(out)!r})"
    run(sys.executable, "-c", build, cwd=copy)
    (built,) = out.glob("*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the source distribution."""
    out = tmp_path_factory.mktemp("wheel")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "wheel", *offline, "-w", out, source, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that has the wheel and nothing of this checkout."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, "install", *offline, wheel, cwd=folder)
    return python


def test_the_source_distribution_has_what_readers_and_packagers_look_for(source: Path) -> None:
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = {file.name for file in ROOT.glob("*.md")} | {"LICENSE", "pyproject.toml"}
    assert {*pages, "docs/guide.md", "examples/quickstart.py"} <= names
    assert [name for name in names if name.endswith((".pyc", ".db")) or "__pycache__" in name] == []


def test_the_wheel_holds_the_tree_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert sorted(held) == sorted(packaged_files())


def test_the_wheel_carries_licence_and_marker_of_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        text = archive.read(metadata).decode()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "trident/py.typed" in names
    assert "License-Expression: Apache-2.0" in text


def test_the_wheel_has_the_version_that_the_package_tells(wheel: Path) -> None:
    assert wheel.name.startswith(f"trident_spark-{trident.__version__}-")


def test_an_installed_wheel_imports(installed: Path, tmp_path: Path) -> None:
    core = sysconfig.get_path("purelib")  # cachetools and orjson, which no index is asked for
    code = "import trident, trident.states, trident.backends; print(trident.states.__file__)"
    printed = run(installed, "-c", code, cwd=tmp_path, PYTHONPATH=core)
    assert Path(printed.strip()).is_relative_to(installed.parents[1])


def test_an_installed_wheel_runs_the_quickstart(installed: Path, tmp_path: Path) -> None:
    core = sysconfig.get_path("purelib")
    shutil.copy(ROOT / "examples" / "quickstart.py", tmp_path)
    printed = run(installed, "quickstart.py", cwd=tmp_path, PYTHONPATH=core)
    assert "[[" in printed


def test_an_installed_wheel_has_the_command_that_finds_what_lies_here(
    installed: Path, tmp_path: Path
) -> None:
    core = sysconfig.get_path("purelib")
    (tmp_path / "words.py").write_text(
        "from trident import FixedBatchSpout, TridentTopology\n"
        "topology = TridentTopology()\n"
        "topology.newStream('words', FixedBatchSpout('word', 1, ['cat']))\n"
    )
    command = installed.parent / "trident"
    printed = run(command, "explain", "words:topology", cwd=tmp_path, PYTHONPATH=core)
    assert "words" in printed


def test_an_installed_wheel_gives_pytest_the_fixtures_of_its_documentation(
    installed: Path, tmp_path: Path
) -> None:
    """The tests that docs/testing.md shows, also where the plugin is named again."""
    RedisServer(tmp_path / "redis").command()  # one of these tests needs it
    _, page = (ROOT / "docs" / "testing.md").read_text().split("## With pytest\n")
    shown = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_shown.py").write_text("\n\n".join(shown))
    core = sysconfig.get_path("purelib")
    pytest_there = (installed, "-m", "pytest", "-rA", "-W", "error", "-p", "no:cacheprovider")
    ran = run(*pytest_there, cwd=tests, PYTHONPATH=core)
    assert "PASSED test_shown.py::test_another_process_finds_the_counts_in_redis" in ran
    assert "PASSED test_shown.py::TestDictMap::" in ran

    (tests / "conftest.py").write_text('pytest_plugins = ["trident.pytest_plugin"]')
    named = (*pytest_there, "-p", "trident.pytest_plugin", "-k", "driver_crashes")
    assert "1 passed" in run(*named, cwd=tests, PYTHONPATH=core)
