"""A session of Spark Connect whose server is not there: an error, and no ten minutes of retries."""

from __future__ import annotations

import pytest

from trident.spark import versions
from trident.spark.errors import EngineLostError
from trident.spark.workers import ask_workers


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_a_server_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = pytest.importorskip("pyspark.sql.connect.session")
    session = sessions.SparkSession.Builder().remote("sc://localhost:1").create()
    bound = versions._bound_retries
    monkeypatch.setattr(versions, "_bound_retries", lambda session, most: bound(session, 0))
    with pytest.raises(EngineLostError, match="Connect server does not answer .*refused"):
        ask_workers(session)
    versions.end_session(session)
