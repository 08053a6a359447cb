"""The order of the folders, which pyproject.toml states as contracts of import-linter."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

from tests.packaging.conftest import ROOT

EVERYWHERE = {"cachetools", "orjson"}
LINT = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
BROKEN = {
    "states/asking.py": "def f():\n    import trident.batch.work",
    "states/control.py": "def f():\n    import trident.states.maps.reading",
    "trident/plan/places.py": "if TYPE_CHECKING:\n    import trident.kernels.keys",
    "trident/kernels/calls.py": "def f():\n    import pyspark.sql",
    "backends/urls.py": "import redis",
    "trident/extras/__init__.py": "",
}
"""What breaks a contract, by the file that it is added to."""


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=root,
        env={"PYTHONPATH": str(root), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def contracts() -> list[dict[str, list[str]]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[dict[str, list[str]]] = settings["tool"]["importlinter"]["contracts"]
    return found


@cache
def imports() -> dict[str, set[str]]:
    """What each module of the library imports, anywhere in it; of other packages their names."""
    graph = grimp.build_graph("trident", include_external_packages=True, cache_dir=None)
    return {
        module: graph.find_modules_directly_imported_by(module)
        for module in graph.modules
        if not graph.is_module_squashed(module)
    }


def test_each_contract_is_kept() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


def test_what_breaks_a_contract_is_found(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in ("states", "backends", "trident"):
        kept = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=kept)
    for name, text in BROKEN.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    for told in (
        "trident.states.asking -> trident.batch.work",
        "trident.states.control -> trident.states.maps.reading",
        "trident.plan.places -> trident.kernels.keys",
        "trident.kernels.calls",
        "trident.backends.urls",
        "trident.extras",
    ):
        assert told in done.stdout, done.stdout


def test_the_architecture_page_shows_the_order() -> None:
    order = next(each for each in contracts() if each["containers"] == ["trident"])
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page[page.index("| from the top |") :].partition("\n\n")[0]
    rows = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in table.splitlines()[2:]]
    layers = [re.findall(r"\w+", layer) for layer in order["layers"] if not layer.startswith("(")]
    assert rows == layers


def test_each_package_that_is_imported_is_named_in_a_contract() -> None:
    named = {name for each in contracts() for name in each.get("protected_modules", ())}
    others = {found for each in imports().values() for found in each if found not in imports()}
    assert others - named - EVERYWHERE - sys.stdlib_module_names == set()


def test_no_module_imports_itself_by_a_circle() -> None:
    """Not late either, and not for type checkers; a package's own file is a module too."""
    TopologicalSorter(imports()).prepare()  # raises CycleError, which names them
