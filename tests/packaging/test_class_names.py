"""A class name says which class is meant, wherever in the library it is read."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.packaging.conftest import ROOT

EXEMPT = {
    "Factory": "nested, as in Trident: MemoryMapState.Factory and LRUMemoryMapState.Factory",
}
"""Names that several classes have, each with the reason."""


def test_each_class_name_is_one_class() -> None:
    found = defaultdict(list)
    for folder in ("trident", "states", "backends"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")

    several = {name: places for name, places in found.items() if len(places) > 1}
    assert several.keys() == EXEMPT.keys(), several
