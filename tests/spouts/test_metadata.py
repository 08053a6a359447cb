"""Metadata that a spout changes in place: the log keeps what was committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.spouts.counting import count
from trident import BatchCoordinator, Emitter, Fields, ITridentSpout, TridentCollector
from trident.log import file_log
from trident.spouts.interfaces import SpoutKind
from trident.states.values import Token
from trident.testing import fail_at

BATCHES = 4


class Returning(ITridentSpout, BatchCoordinator, Emitter):
    """Emits 0, 1, 2 …, one a batch; keeps one object as its metadata."""

    kind: ClassVar[SpoutKind] = "opaque"

    def __init__(self) -> None:
        self.kept = {"next": 0}

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
        return metadata

    def success(self, token: Any) -> None:
        pass


class Taking(Returning):
    """The same, in the object that it is given."""

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        return self.emitted(metadata or {"next": 0}, collector)


class Planned(Taking):
    kind = "transactional"


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
