"""Metadata that a spout changes in place: the log keeps what was committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.spouts.counting import count
from trident import Fields, TridentCollector
from trident.batch.watchpoints import watching
from trident.log import file_log
from trident.log.entry import LogEntry
from trident.log.errors import MetadataError
from trident.log.file_log import FileLog
from trident.spouts.interfaces import SpoutKind
from trident.states.values import Token
from trident.storm import BatchCoordinator, Emitter, ITridentSpout
from trident.testing import fail_at

BATCHES = 4


class Returning(ITridentSpout, BatchCoordinator, Emitter):
    """Emits 0, 1, 2 …, one a batch; keeps one object as its metadata."""

    kind: ClassVar[SpoutKind] = "opaque"

    def __init__(self) -> None:
        self.kept = {"next": 0}
        self.emitted_third: Callable[[], object] = lambda: None

    def getCoordinator(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Any:
        return self

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Any:
        return self

    def getOutputFields(self) -> Fields:
        return Fields.of("number int")

    def isReady(self, txid: int) -> bool:
        return txid <= BATCHES

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        return {"next": txid - 1}

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        self.kept["next"] = metadata["next"] if metadata else 0
        return self.emitted(self.kept, collector)

    def emitted(self, metadata: dict[str, int], collector: TridentCollector) -> Any:
        collector.emit([metadata["next"]])
        metadata["next"] += 1
        if metadata["next"] == 3:
            self.emitted_third()
        return metadata

    def success(self, token: Any) -> None:
        pass


class Taking(Returning):
    """The same, in the object that it is given."""

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        return self.emitted(metadata or {"next": 0}, collector)


class Planned(Taking):
    kind = "transactional"


class Deciding(Planned):
    """Keeps the object that decides a batch."""

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        self.kept["next"] = txid - 1
        return self.kept


@pytest.mark.parametrize("spout", [Returning, Taking, Planned])
def test_an_attempt_that_failed_leaves_the_next_one_what_it_had(
    tmp_path: Path, spout: type[Returning]
) -> None:
    with fail_at("after write", txid=3):
        assert count(tmp_path, spout(), "number", list(range(BATCHES))) == [1] * BATCHES


@pytest.mark.parametrize("spout", [Returning, Taking, Planned])
def test_the_log_is_gone_on_with_in_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spout: type[Returning]
) -> None:
    monkeypatch.setattr(file_log, "_LARGEST", 1)
    assert count(tmp_path, spout(), "number", list(range(BATCHES))) == [1] * BATCHES


class Inexpressible(Returning):
    """What it says would come back from the log as a list."""

    def emitted(self, metadata: dict[str, int], collector: TridentCollector) -> Any:
        collector.emit([0])
        return (1, 2)


class InexpressiblePlan(Planned):
    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        return (1, 2)


@pytest.mark.parametrize("spout", [Inexpressible, InexpressiblePlan])
@pytest.mark.parametrize("pending", [1, 2])
def test_metadata_that_cannot_be_logged_commits_nothing(
    tmp_path: Path, spout: type[Returning], pending: int
) -> None:
    with pytest.raises(MetadataError, match="stream 'values'"):
        count(tmp_path, spout(), "number", [0], max_pending=pending)
    newest = FileLog(tmp_path / "checkpoint" / "values" / "log").newest()
    assert newest is not None
    assert (newest.committed, newest.planned) == (0, None)


@pytest.mark.parametrize("spout", [Returning, Taking, Planned, Deciding])
def test_a_commit_stores_what_its_own_batch_said_though_later_ones_are_emitted(
    tmp_path: Path, spout: type[Returning]
) -> None:
    """A commit that waits is overtaken by the emission of the next batch."""
    started = spout()
    emitted = threading.Event()
    stored = dict[int, Any]()

    def overtake(point: str, token: Token) -> None:
        if point == "before begin" and token == (2, 0):
            assert emitted.wait(30)

    def append(log: FileLog, entry: LogEntry) -> None:
        if entry.planned is None:
            stored.setdefault(entry.committed, entry.metadata.get("values"))
        else:
            stored.setdefault(entry.begun.txid, entry.planned["values"])
        appended(log, entry)

    appended = FileLog.append
    started.emitted_third = emitted.set
    with pytest.MonkeyPatch.context() as patched, watching(overtake):
        patched.setattr(FileLog, "append", append)
        asked = list(range(BATCHES))
        assert count(tmp_path, started, "number", asked, max_pending=3) == [1] * BATCHES
    expected = {txid: {"next": txid - isinstance(started, Planned)} for txid in range(1, 5)}
    assert {txid: said for txid, said in stored.items() if txid} == expected
