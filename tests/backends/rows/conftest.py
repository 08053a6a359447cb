"""Each test of rows runs on each database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.rows.databases import Place

DATABASES = ("sqlite", "postgres", "mariadb")


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A database, and a table of the test's own."""
    if request.param == "sqlite":
        return Place.at(f"sqlite:{tmp_path}/shop.db")
    return Place.at(request.getfixturevalue(f"{request.param}_server").url)
