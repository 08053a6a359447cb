"""Queries answered by a line of bolts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trident.errors import PlanError
from trident.transactional import (
    BaseBasicBolt,
    BaseBatchBolt,
    LinearDRPCTopologyBuilder,
    ReturnResults,
)


class Split(BaseBasicBolt):
    def execute(self, tuple: Any, collector: Any) -> None:
        for word in tuple["args"].split():
            collector.emit([word])

    def declareOutputFields(self, declarer: Any) -> None:
        declarer.declare("id, word")


class CountAll(BaseBatchBolt):
    def prepare(self, conf: Any, context: Any, collector: Any, id: Any) -> None:
        self.collector, self.id, self.words = collector, id, set[str]()

    def execute(self, tuple: Any) -> None:
        self.words.add(tuple["word"])

    def finishBatch(self) -> None:
        self.collector.emit([self.id, len(self.words)])

    def declareOutputFields(self, declarer: Any) -> None:
        declarer.declare("id, count")


class Add(CountAll):
    def prepare(self, conf: Any, context: Any, collector: Any, id: Any) -> None:
        self.collector, self.id, self.sum = collector, id, 0

    def execute(self, tuple: Any) -> None:
        self.sum += tuple[1]

    def finishBatch(self) -> None:
        self.collector.emit([self.id, self.sum])


def asked(builder: LinearDRPCTopologyBuilder, *args: str) -> list[Any]:
    with builder.createLocalTopology().start() as run:
        return [json.loads(run.drpc.execute("words", each)) for each in args]


def test_a_request_passes_the_bolts_and_each_ends_after_all_of_its_tuples() -> None:
    builder = LinearDRPCTopologyBuilder("words")
    builder.addBolt(Split(), 2)
    builder.addBolt(CountAll(), 3).fieldsGrouping("word")
    builder.addBolt(Add()).globalGrouping()
    builder.addBolt(ReturnResults())
    assert asked(builder, "a b c a b a", "", "d") == [[[3]], [[0]], [[1]]]


FINISHED: list[object] = []


class Finishing(Split):
    def finishedId(self, id: object) -> None:
        FINISHED.append(id)


def test_a_basic_bolt_is_told_the_end_of_each_request() -> None:
    FINISHED.clear()
    builder = LinearDRPCTopologyBuilder("words")
    builder.addBolt(Finishing())
    assert asked(builder, "a b", "c") == [[["a"], ["b"]], [["c"]]]
    assert len(set(FINISHED)) == 2


@pytest.mark.parametrize(
    "bolts",
    [
        [],
        [
            type(
                "Wide",
                (Split,),
                {"declareOutputFields": lambda self, declarer: declarer.declare("id, a, b")},
            )()
        ],
    ],
)
def test_the_last_bolt_emits_an_id_and_a_result(bolts: list[Any]) -> None:
    builder = LinearDRPCTopologyBuilder("words")
    for bolt in bolts:
        builder.addBolt(bolt)
    with pytest.raises(PlanError, match=r"the last bolt emits \[id, result\]"):
        builder.createLocalTopology()
