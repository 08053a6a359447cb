"""CONTRIBUTING names every file to touch, and what it names is there.

Which files those are is read from the code: what names all backends has to be told of another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT

GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
BACKENDS = ("redis", "memcached", "hbase", "postgres")
EXAMPLE = "memcached"  # stands for the backend that the guide calls mystore
FOLDERS = ("trident", "states", "backends", "tests", "benchmarks", "setup", "docs")
PATH = rf"(?:(?:{'|'.join(FOLDERS)})/[\w/.-]*|README\.md|CHANGELOG\.md|pyproject\.toml|Makefile)"
SIMPLE_STEPS = ("EachNode", "FilterNode", "MapNode", "FlatMapNode", "PeekNode")
OPERATIONS = (
    ("Equals", "FilterNull", "Negate"),
    ("Count", "Sum", "Min", "Max"),
    ("MapGet", "SnapshotGet", "TupleCollectionGet"),
)


def section(title: str) -> str:
    """The guide's text below a heading."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"CONTRIBUTING.md has no section {title!r}"
    return found[1].replace("mystore", EXAMPLE)


def named(text: str) -> set[str]:
    """The files and folders that a text names."""
    return set(re.findall(rf"`({PATH})`", text))


@cache
def files() -> dict[str, str]:
    """What people write in this repository, by its path; links are not followed."""
    tops = [path for path in ROOT.iterdir() if path.is_file()]
    below = [
        Path(folder, name)
        for top in FOLDERS
        for folder, _, names in os.walk(ROOT / top)
        for name in names
    ]
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in [*tops, *below]
        if path.suffix in (".py", ".md", ".toml", "") and not path.name.startswith(".")
    }


def naming_all(words: Iterable[str], flags: int = 0) -> set[str]:
    """The files in which each of these stands, as a word or as the beginning of one."""
    patterns = [re.compile(rf"(?<![A-Za-z]){word}", flags) for word in words]
    ours = {"CONTRIBUTING.md", "tests/packaging/test_contributing.py"}
    return {
        path for path, text in files().items() if all(pattern.search(text) for pattern in patterns)
    } - ours


@pytest.mark.parametrize(
    "title", ["How to add a backend", "How to add a plan node", "How to add an operation"]
)
def test_what_a_list_names_is_there(title: str) -> None:
    text = section(title)
    assert len(named(text)) >= 10
    assert sorted(path for path in named(text) if not (ROOT / path).exists()) == []
    told = re.findall(rf"`(\w+)`\s+of\s+`({PATH})`", text)
    for name, path in told:
        source = (ROOT / path).read_text()
        assert re.search(rf"^(class |def )?{name}\b", source, re.MULTILINE), f"{path} has no {name}"


def test_every_file_that_names_all_backends_is_in_the_list_for_one() -> None:
    knowing = naming_all(BACKENDS, re.IGNORECASE)
    assert {"backends/urls.py", "trident/pytest_plugin.py", "setup/servers"} <= knowing
    assert sorted(knowing - named(section("How to add a backend"))) == []


def test_every_file_that_names_all_simple_steps_is_in_the_list_for_a_node() -> None:
    knowing = naming_all(rf"{name}\b" for name in SIMPLE_STEPS)
    assert {"trident/plan/nodes.py", "trident/job/compile.py"} <= knowing
    assert sorted(knowing - named(section("How to add a plan node"))) == []


@pytest.mark.parametrize("operations", OPERATIONS)
def test_every_file_that_names_all_operations_of_a_sort_is_in_the_list_for_one(
    operations: tuple[str, ...],
) -> None:
    knowing = naming_all(rf"{name}\b" for name in operations)
    assert "trident/operations/builtin.py" in knowing
    assert sorted(knowing - named(section("How to add an operation"))) == []
