"""Spouts whose emitter has a part in the commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spouts.counting import count
from trident import Fields
from trident.errors import OperationTypeError
from trident.storm import (
    BatchCoordinator,
    CommitterEmitter,
    Emitter,
    ICommitterTridentSpout,
    ITridentSpout,
)
from trident.testing import fail_at
from trident.transactional import ICommitterTransactionalSpout, ITransactionalSpout


class Committing(CommitterEmitter):
    def __init__(self) -> None:
        self.committed: list[Any] = []

    def emitBatch(self, token: Any, metadata: Any, collector: Any) -> Any:
        collector.emit(["a"])
        return token.txid

    def commit(self, token: Any) -> None:
        self.committed.append(token)


class Forgetful(Emitter):
    """Has the method, and is not derived from the class that says so."""

    def emitBatch(self, token: Any, metadata: Any, collector: Any) -> Any:
        collector.emit(["a"])

    def commit(self, token: Any) -> None:
        raise AssertionError("never called")


class Twice(BatchCoordinator):
    def isReady(self, txid: int) -> bool:
        return txid <= 2


class Spout(ICommitterTridentSpout):
    def __init__(self, coordinator: Any, emitter: Any) -> None:
        self.coordinator, self.emitter = coordinator, emitter

    def getCoordinator(self, txStateId: str, conf: Any, context: Any) -> Any:
        return self.coordinator

    def getEmitter(self, txStateId: str, conf: Any, context: Any) -> Any:
        return self.emitter

    def getOutputFields(self) -> Fields:
        return Fields(word=str)


def test_an_emitter_commits_once_each_attempt_that_has_written(tmp_path: Path) -> None:
    emitter = Committing()
    with fail_at("after write", txid=1), fail_at("before commit", txid=2):
        assert count(tmp_path, Spout(Twice(), emitter), "word", ["a"]) == [2]
    assert emitter.committed == [(1, 1), (2, 0), (2, 1)]


def test_an_emitter_that_would_never_be_asked_to_commit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OperationTypeError, match="expected a CommitterEmitter, found 'Forgetful'"):
        count(tmp_path, Spout(Twice(), Forgetful()), "word", ["a"])


def test_a_coordinator_of_no_interface_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OperationTypeError, match="expected a BatchCoordinator, found 'object'"):
        count(tmp_path, Spout(object(), Committing()), "word", ["a"])


def test_a_classic_emitter_that_would_never_be_asked_to_commit_is_an_error(tmp_path: Path) -> None:
    class Classic(ICommitterTransactionalSpout):
        def getCoordinator(self, conf: Any, context: Any) -> Any:
            return Coordinating()

        def getEmitter(self, conf: Any, context: Any) -> Any:
            return ClassicEmitter()

        def getOutputFields(self) -> Fields:
            return Fields(word=str)

    class Coordinating(ITransactionalSpout.Coordinator):
        def initializeTransaction(self, txid: int, prevMetadata: Any) -> Any:
            return txid

        def isReady(self) -> bool:
            return True

    class ClassicEmitter(ITransactionalSpout.Emitter):
        def emitBatch(self, tx: Any, coordinatorMeta: Any, collector: Any) -> None:
            collector.emit(["a"])

    with pytest.raises(OperationTypeError, match="ICommitterTransactionalSpout.Emitter, found"):
        count(tmp_path, Classic(), "word", ["a"])


def test_a_spout_that_hides_that_its_emitter_commits_is_an_error(tmp_path: Path) -> None:
    class Plain(ITridentSpout):
        getCoordinator = Spout.getCoordinator
        getEmitter = Spout.getEmitter
        getOutputFields = Spout.getOutputFields
        coordinator, emitter = Twice(), Committing()

    with pytest.raises(OperationTypeError, match="an ICommitterTridentSpout, found 'Plain'"):
        count(tmp_path, Plain(), "word", ["a"])
