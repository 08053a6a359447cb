"""What is logged, at which level, and what is not."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from tests.figures.topologies import counted, fed
from trident import (
    Count,
    Duration,
    FeederBatchSpout,
    MemoryMapState,
    TridentTopology,
    TumblingDurationWindow,
)
from trident.errors import OperationError
from trident.figures.prometheus import text
from trident.testing import fail_at


def test_the_library_has_no_handler_and_no_level_of_its_own() -> None:
    logger = logging.getLogger("trident")
    assert logger.handlers == []
    assert logger.level == logging.NOTSET
    assert logger.propagate


def test_a_person_reads_of_start_recovery_retries_and_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trident")
    state = f"sqlite:{tmp_path / 'counts.db'}"
    for _ in range(2):
        spout = fed()
        run = counted(spout, state).start(checkpoint=tmp_path / "checkpoint")
        with run, fail_at("before write"):
            spout.feed([["secret"]])
    assert [record.getMessage() for record in caplog.records] == [
        "words begins with batch 1",
        "attempt 0 of batch 1 of words failed and is retried: failed before write on request",
        "words stopped, the last batch was 1",
        "words goes on after batch 1",
        "attempt 1 of batch 2 of words failed and is retried: failed before write on request",
        "words stopped, the last batch was 2",
    ]


def test_the_failure_of_a_group_is_logged_without_values(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trident")
    topology = TridentTopology()
    topology.newStream("words", spout := fed()).map(lambda word: int(word), "n").peek(print)
    with pytest.raises(OperationError), topology.start():
        spout.feed([["secret"]])
    assert "words failed with ValueError (error), no batch is committed" in caplog.messages
    assert "secret" not in caplog.text


def test_each_batch_is_a_line_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "trident")
    spout = fed()
    with counted(spout).start():
        spout.feed([["secret"], ["cat"]])
    [line] = [message for message in caplog.messages if message.startswith("batch 1")]
    expected = (
        r"batch 1 of words: 2 tuples, 2 keys read, 2 written, 0 from caches, attempts 1; "
        r"ms: plan \d+\.\d\d emit \d+\.\d\d run .* begin .* acknowledge \d+\.\d\d .*"
    )
    assert re.fullmatch(expected, line)
    assert "secret" not in caplog.text


def test_more_than_a_hundredth_of_late_tuples_is_warned_of_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("at long")
    window = TumblingDurationWindow.of(Duration.of(10)).withTimestampField("at")
    topology.newStream("clicks", spout).window(window, MemoryMapState.Factory(), Count(), "n")
    with topology.start() as run:
        spout.feed([(50,)])
        spout.feed([(1,), *[(51,)] * 99])
        assert caplog.messages == []
        spout.feed([(1,), (2,), *[(51,)] * 98])
        spout.feed([(3,)])
        run.processAllAvailable()
        assert 'trident_late_tuples_total{group="clicks"} 4' in text(run.figures())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "clicks: 2 of the 100 tuples of batch 3 came too late" in caplog.text
