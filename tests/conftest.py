"""What the tests of every folder share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for the whole run: a second JVM would cost every test seconds."""
    from trident.spark.session import local_session

    session = local_session()
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for the session, so that `-m "not spark"` needs no Java."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.name.endswith(".local_session"):
            item.add_marker("spark")
