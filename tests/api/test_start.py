"""What ``start`` refuses before anything runs."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.api.topologies import (
    Column,
    Frame,
    LogFactory,
    TwoMethods,
    Write,
    sentences,
    word_count,
)
from trident.api.start import _start as start
from trident.api.topology import TridentTopology
from trident.backends import sqlite
from trident.backends.memory import MemoryMapState
from trident.batch.adopt import Adopt
from trident.batch.engine import Engine
from trident.batch.start_options import StartOptions
from trident.errors import GuaranteeWarning, LostStateError, OperationTypeError, PlanError
from trident.log.checkpoint import Checkpoint
from trident.log.errors import CheckpointError
from trident.operations.builtin import Count, MapGet, TupleCollectionGet
from trident.operations.callables import native
from trident.spouts.feeder import FeederBatchSpout
from trident.states.maps.factory import OpaqueMap
from trident.states.state import State, StateFactory


class Unannotated(StateFactory):
    def makeState(self, *partition: Any) -> Any:
        return LogFactory().makeState()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"spark": "checkpoint"}, "expected a SparkSession, found"),
        ({"checkpoin": "x"}, "there is no option 'checkpoin'; .* Did you mean 'checkpoint'"),
        ({"acept_loss": {}}, "there is no option 'acept_loss'; .* Did you mean 'accept_loss'"),
        ({"checkpoint": ""}, "the checkpoint is the path of a folder"),
        ({"checkpoint": 7}, "the checkpoint is the path of a folder or a URL, found '7'"),
        ({"trigger": -1.5}, "seconds \\(0 or more\\)"),
        ({"trigger": True}, "seconds \\(0 or more\\)"),
        ({"trigger": float("nan")}, "seconds \\(0 or more\\)"),
        ({"trigger": float("inf")}, "seconds \\(0 or more\\)"),
        ({"trigger": "once"}, "trigger= is 'once'; there are: available"),
        ({"retries": -1}, "a whole number from 0"),
        ({"retries": 1.5}, "a whole number from 0"),
        ({"retries": True}, "a whole number from 0"),
        ({"patience": -1}, "a number of seconds from 0"),
        ({"patience": float("nan")}, "a number of seconds from 0"),
        ({"patience": True}, "a number of seconds from 0"),
        ({"patience": "10 minutes"}, "a number of seconds from 0"),
        (
            {"adopt": Adopt.from_checkpoint("old")},
            "without a checkpoint nothing can be adopted.*Give checkpoint=",
        ),
        ({"adopt": "old"}, r"adopt= .* found 'str'.*Adopt\.from_checkpoint\(<its folder or URL>\)"),
        ({"on_failure": "ded-letter"}, "Did you mean 'dead-letter'"),
        ({"accept_loss": {"cuont": 5}}, "accept_loss names no state .*Did you mean 'count'"),
        ({"accept_loss": {"count": "5"}}, "number of a batch for 'count', found \"'5'\""),
        ({"accept_loss": "count"}, "accept_loss takes {state: batch}"),
        ({"accept_change": {"cuont": "Sum"}}, "no state or stream 'cuont'.*Did you mean 'count'"),
        ({"accept_change": {"count": 5}}, "accept_change takes {name: what it is now}"),
        ({"accept_change": {"count"}}, "accept_change takes {name: what it is now}"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], text: str) -> None:
    topology = TridentTopology()
    word_count(sentences(topology))
    with pytest.raises(PlanError, match=text):
        topology.start(**options)


def test_an_empty_topology_does_not_start() -> None:
    with pytest.raises(PlanError, match="the topology is empty"):
        TridentTopology().start()


def test_steps_that_need_spark_do_not_start_without_it() -> None:
    frames = TridentTopology()
    frames.newStream("lines", Frame(Column("value", "string")))
    with pytest.raises(PlanError, match=r"test_start.py:\d+: only Spark can run the step"):
        frames.start()
    natives = TridentTopology()
    sentences(natives).each("sentence", native("upper(sentence)"), "upper")
    with pytest.raises(PlanError, match=r"native\("):
        natives.start()


def test_dead_letters_need_opaque_maps() -> None:
    topology = TridentTopology()
    sentences(topology).partitionPersist(LogFactory(), "id", Write(), name="log")
    with pytest.raises(PlanError, match="needs opaque maps; not so is the state 'log'"):
        topology.start(on_failure="dead-letter")


def test_a_session_is_known_by_what_it_can_do() -> None:
    topology = TridentTopology()
    word_count(sentences(topology))
    with pytest.raises(OperationTypeError, match="expected a SparkSession, found 'Spark'"):
        topology.start(type("Spark", (), {"__repr__": lambda _: "Spark"})())


def test_a_topology_that_runs_is_not_started_again(tmp_path: Path) -> None:
    topology = TridentTopology()
    topology.newStream("words", FeederBatchSpout("word string")).groupBy(
        "word"
    ).persistentAggregate(sqlite.opaque(tmp_path / "counts.db"), Count(), "count")
    with topology.start(checkpoint=tmp_path / "checkpoint"):
        for checkpoint in (tmp_path / "checkpoint", tmp_path / "another", None):
            with pytest.raises(PlanError, match=r"this topology runs already\. Call stop\(\)"):
                topology.start(checkpoint=checkpoint)
    topology.start(checkpoint=tmp_path / "checkpoint").stop()


def test_another_stream_id_under_a_checkpoint_does_not_begin_a_second_log(tmp_path: Path) -> None:
    def counting(*streams: str) -> tuple[TridentTopology, FeederBatchSpout]:
        topology = TridentTopology()
        spouts = [FeederBatchSpout("word string") for _ in streams]
        for stream, spout in zip(streams, spouts, strict=True):
            words = topology.newStream(stream, spout).groupBy("word")
            words.persistentAggregate(
                sqlite.opaque(tmp_path / "counts.db"), Count(), "count", name=stream
            )
        return topology, spouts[0]

    topology, spout = counting("words")
    with topology.start(checkpoint=tmp_path / "checkpoint"):
        spout.feed([("cow",)], 10)
    with pytest.raises(CheckpointError, match=r"a log of the stream\(s\) words, up to batch 1"):
        counting("Words")[0].start(checkpoint=tmp_path / "checkpoint")
    assert {path.name for path in (tmp_path / "checkpoint").iterdir()} == {".lock", "words"}
    counting("words", "others")[0].start(checkpoint=tmp_path / "checkpoint").stop()


@pytest.mark.parametrize(
    ("factory", "query", "text"),
    [
        (
            OpaqueMap.factory(lambda: TwoMethods()),
            TupleCollectionGet(),
            r"getTuples\(\), found OpaqueMap",
        ),
        (Unannotated(), MapGet(), r"multiGet\(\), found Log"),
    ],
)
def test_a_query_that_only_the_made_state_can_refuse_is_refused_at_start(
    factory: Any, query: Any, text: str
) -> None:
    topology = TridentTopology()
    state = topology.newStaticState(factory, name="mine")
    topology.newDRPCStream("ask").stateQuery(state, "args", query, "found, more")
    with pytest.raises(OperationTypeError, match=rf"test_start.py:\d+, .*{text}.* in state 'mine'"):
        topology.start()


@pytest.mark.parametrize("place", ["sqlite:{}/missing/counts.db", "sqlite:{}/file/counts.db"])
def test_a_missing_folder_for_sqlite_is_an_error_before_anything_is_opened(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    topology = TridentTopology()
    word_count(sentences(topology), place.format(tmp_path))
    with pytest.raises(PlanError, match="state 'count': SQLite: for counts.db there is no folder"):
        topology.start(checkpoint=tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()
    queries = TridentTopology()
    queries.newStaticState(place.format(tmp_path))
    queries.newDRPCStream("ask")
    with pytest.raises(PlanError, match="there is no folder"):
        queries.start()


def counted_in_memory(spout: FeederBatchSpout, factory: Any) -> TridentTopology:
    topology = TridentTopology()
    words = topology.newStream("words", spout).groupBy("word")
    words.persistentAggregate(factory, Count(), "count")
    return topology


def test_memory_with_a_checkpoint_warns_and_its_loss_names_it(tmp_path: Path) -> None:
    spout = FeederBatchSpout("word string")
    topology = counted_in_memory(spout, MemoryMapState.Factory())
    with pytest.warns(GuaranteeWarning, match="'count' is in memory and ends with this process"):
        run = topology.start(checkpoint=tmp_path)
    with run:
        spout.feed([("cow",)], 10)
    of_the_next_process = counted_in_memory(spout, "memory:")
    with pytest.warns(GuaranteeWarning), pytest.raises(LostStateError) as raised:
        of_the_next_process.start(checkpoint=tmp_path)
    assert "it was in memory" in str(raised.value)
    assert "batch 1 was stored there" in str(raised.value)
    assert "backup" not in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_memory_without_a_checkpoint_does_not_warn() -> None:
    counted_in_memory(FeederBatchSpout("word string"), MemoryMapState.Factory()).start().stop()


def test_a_run_of_spouts_without_a_checkpoint_makes_no_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: pytest.fail("made a folder"))
    counted_in_memory(FeederBatchSpout("word string"), MemoryMapState.Factory()).start().stop()


class Log(State):
    """Knows whether it was closed."""

    closed = False

    def beginCommit(self, batch: Any) -> None: ...

    def commit(self, batch: Any) -> None: ...

    def close(self) -> None:
        self.closed = True


class Broken(Engine[Any]):
    """Can't run any group."""

    def open(self, group: Any, states: Any) -> Any:
        [self.made] = states.values()
        raise OSError("broken")


def test_a_start_that_fails_closes_the_states_and_releases_the_checkpoint(tmp_path: Path) -> None:
    class Logs(StateFactory):
        def makeState(self, *partition: Any) -> Log:
            return Log()

    topology = TridentTopology()
    sentences(topology).partitionPersist(Logs(), "id", Write(), name="log")
    engine = Broken()
    with pytest.raises(OSError, match="broken"):
        start(topology.plan(), engine, StartOptions(checkpoint=tmp_path))
    assert engine.made.closed
    Checkpoint(tmp_path).release()
