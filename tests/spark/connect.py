"""Sessions of a Spark Connect server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A session of a server, while which this process has no classic ones."""
    from pyspark.sql.connect.session import SparkSession

    remote: Any = SparkSession
    with patch.dict(os.environ, {"SPARK_CONNECT_MODE_ENABLED": "1"}):
        session = remote.builder.remote(url).create()
        try:
            yield session
        finally:
            session.client.close()
