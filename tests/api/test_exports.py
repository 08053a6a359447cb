"""The names of the package: type checkers, ``__all__`` and the lazy loader agree."""

from __future__ import annotations

import ast
from pathlib import Path

import trident


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
