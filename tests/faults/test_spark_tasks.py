"""Tasks of Spark that are killed and run again while their first copy still writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trident.testing.servers.redis import RedisServer


@pytest.mark.spark
def test_words_count_once_though_killed_tasks_and_those_in_their_place_write_together(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    program = [sys.executable, "-m", "tests.faults.on_spark", str(tmp_path), str(own_redis.port)]
    subprocess.run(program, timeout=200, check=True)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["exact"]
    # What was killed was a task, which Spark ran again: every batch took one attempt.
    assert result["retried"] == {}
    together, late = result["answers"]
    assert together[0]
    assert late == [True, False]
