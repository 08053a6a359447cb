"""What ``start`` refuses before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.topologies import Column, Frame, LogFactory, Write, sentences, word_count
from trident.callables import native
from trident.errors import OperationTypeError, PlanError
from trident.topology import TridentTopology


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"spark": "checkpoint"}, "no SparkSession is"),
        ({"checkpoint": ""}, "the checkpoint is the path of a folder"),
        ({"checkpoint": 7}, "the checkpoint is the path of a folder, found '7'"),
        ({"trigger": 0}, "seconds above 0"),
        ({"trigger": -1.5}, "seconds above 0"),
        ({"trigger": True}, "seconds above 0"),
        ({"trigger": float("nan")}, "seconds above 0"),
        ({"trigger": float("inf")}, "seconds above 0"),
        ({"trigger": "once"}, "found \"'once'\""),
        ({"retries": -1}, "a whole number from 0"),
        ({"retries": 1.5}, "a whole number from 0"),
        ({"retries": True}, "a whole number from 0"),
        ({"adopt": "old"}, "without a checkpoint nothing can be adopted.*Give checkpoint="),
        ({"on_failure": "ded-letter"}, "Did you mean 'dead-letter'"),
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
    with pytest.raises(PlanError, match=r"Spark is needed for the step at .*test_start.py:\d+"):
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
    with pytest.raises(OperationTypeError, match="no SparkSession is 'Spark'"):
        topology.start(type("Spark", (), {"__repr__": lambda _: "Spark"})())
