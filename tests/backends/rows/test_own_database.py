"""The database of one's own that docs/rows.md shows passes the suite, as the page says."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "rows.md").read_text()
CHAPTER = PAGE.partition("## A database of your own")[2].partition("\n## ")[0]
CODE, SUITE = re.findall(r"^```python\n(.*?)^```$", CHAPTER, re.MULTILINE | re.DOTALL)
exec(CODE.partition("\n\ntopology = ")[0] + SUITE)  # Notebook and TestNotebook


@pytest.fixture(autouse=True, scope="module")
def in_a_folder_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with contextlib.chdir(tmp_path_factory.mktemp("notes")):
        yield
