"""The site's reference and index: examples run, every public name has one, every page is listed.

What ``make docs`` checks is checked there alone: links, and that each public name is on a page.
"""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT
from tests.packaging.public_names import public_names

PAGES = [*(ROOT / "docs" / "api").glob("*.rst")]
INDEX = ROOT / "docs" / "index.md"
EXAMPLES = {page: doctest.DocTestParser().get_examples(page.read_text()) for page in PAGES}


@pytest.mark.parametrize("page", [page for page in PAGES if EXAMPLES[page]], ids=lambda at: at.stem)
def test_a_page_shows_what_its_examples_give(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    done = doctest.testfile(str(page), module_relative=False, optionflags=options, encoding="utf-8")
    assert not done.failed


def test_every_public_name_has_an_example() -> None:
    shown = "".join(each.source for found in EXAMPLES.values() for each in found)
    guide = (ROOT / "docs" / "testing.md").read_text()
    without = [
        name
        for name, found in public_names()
        if ">>>" not in (inspect.getdoc(found) or "")
        and not (inspect.isclass(found) and issubclass(found, Exception))  # its docstring says when
        and not re.search(rf"\b{name.rpartition('.')[2]}\b", shown)
        and not re.search(rf"\b{name.removeprefix('trident.pytest_plugin.')}\b", guide)
    ]
    assert without == []


def listed() -> Iterator[Path]:
    """The pages of the index's toctrees, also where one is named by a pattern."""
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", INDEX.read_text(), re.M | re.S):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                page = re.sub(r".*<(.+)>", r"\1", line)  # one that has a title of its own
                yield from (found.resolve() for found in INDEX.parent.glob(f"{page}.md"))


def test_the_index_leads_to_every_page() -> None:
    pages = {*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")}
    missing = sorted(str(page.relative_to(ROOT)) for page in pages - {INDEX, *listed()})
    assert missing == [], "name each in a toctree of docs/index.md"
