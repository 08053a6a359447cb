"""docs/troubleshooting.md: each error that it explains is one that the library raises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.packaging.conftest import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
TEXTS = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)


@cache
def templates() -> str:
    """Every text in the library, a line each, with ``…`` for what is filled in."""
    return "\n".join(
        re.sub(r"\{[^{}]*\}", "…", text).replace("\n", " ")
        for folder in ("trident", "states", "backends")
        for file in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        for text in texts(node)
    )


def texts(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(str(value)):
            yield value
        case ast.JoinedStr(parts):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts
            )


@pytest.mark.parametrize("text", TEXTS)
def test_each_error_of_the_page_is_one_of_the_library(text: str) -> None:
    parts = [re.escape(part.strip()) for part in text.split("…") if part.strip()]
    assert re.search(".*".join(parts), templates()), text


def test_the_page_explains_the_likeliest_errors() -> None:
    assert len(TEXTS) > 20
