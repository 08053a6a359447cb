"""The names of the package: type checkers, ``__all__`` and the lazy loader agree."""

from __future__ import annotations

import ast
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import trident
from tests.packaging.public_names import PACKAGES, public


def test_type_checkers_see_what_is_loaded_lazily() -> None:
    tree = ast.parse(Path(trident.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {name: f"trident.{home}" for name, home in trident._HOME_OF.items()}
    assert seen == homes | dict.fromkeys(trident._PACKAGES, "trident")
    assert sorted(homes) == trident.__all__


def test_there_are_few_names_at_the_top() -> None:
    assert len(trident.__all__) <= 55


@pytest.mark.spark  # whose package needs PySpark
def test_each_public_name_is_in_one_package() -> None:
    packages = {"trident", *PACKAGES}
    found = Counter(name for each in packages for name in public(import_module(each)))
    assert [name for name, times in found.items() if times > 1] == []
