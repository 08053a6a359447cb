"""What a prompt or a log shows of an object: one line, readable, without secrets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.api.topologies import sentences, word_count
from trident import (
    Count,
    FeederBatchSpout,
    FixedBatchSpout,
    GeneratorSpout,
    IBatchSpout,
    MapGet,
    MemoryMapState,
    Split,
    TridentTopology,
)
from trident.backends import StateSpec, state_from_url
from trident.spouts.kafka import KafkaSpout
from trident.states import IBackingMap, OpaqueMap
from trident.testing import Tester
from trident.tuples.fields import Fields

SECRET = "hush"


class TwoMethods(IBackingMap):
    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return [None for _ in keys]

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None: ...


class Unready(IBatchSpout):
    def emitBatch(self, batchId: int, collector: Any) -> None: ...

    def getOutputFields(self) -> Fields:
        raise RuntimeError("not connected")


def declared() -> TridentTopology:
    topology = TridentTopology()
    counts = word_count(sentences(topology))
    topology.newDRPCStream("words").stateQuery(counts, "args", MapGet(), "count")
    return topology


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (
            declared,
            "TridentTopology(streams=['sentences'], queries=['words'], states=['count'])",
        ),
        (TridentTopology, "TridentTopology()"),
        (
            lambda: sentences(TridentTopology()),
            "Stream('id long, sentence string')",
        ),
        (
            lambda: sentences(TridentTopology()).groupBy("id"),
            "GroupedStream('id long, sentence string', by 'id')",
        ),
        (
            lambda: word_count(sentences(TridentTopology())),
            "TridentState('count', MemoryMapState.Factory over MemoryStore)",
        ),
        (lambda: FeederBatchSpout("line string"), "FeederBatchSpout('line string')"),
        (lambda: FixedBatchSpout("line string", 3), "FixedBatchSpout('line string')"),
        (lambda: GeneratorSpout("n long", lambda n: [n]), "GeneratorSpout('n long')"),
        (Unready, "Unready()"),
        (
            lambda: MemoryMapState.Factory("mine"),
            "MemoryMapState.Factory(opaque, MemoryStore(id='mine'))",
        ),
        (
            lambda: StateSpec(MemoryMapState.Factory("mine"), 3).stateFactory,
            "MemoryMapState.Factory(opaque, MemoryStore(id='mine'))",
        ),
        (
            lambda: state_from_url(f"redis://me:{SECRET}@cache/0?cache_size=10&prefix=words"),
            "MapStateFactory(opaque, RedisStore(host='cache', port=6379, prefix='words', "
            "user='me'), cache_size=10)",
        ),
        (Count, "Count()"),
        (Split, "Split()"),
    ],
)
def test_an_object_is_shown_in_a_readable_line(make: Callable[[], Any], shown: str) -> None:
    assert repr(make()) == shown


@pytest.mark.parametrize(
    "make",
    [
        lambda: OpaqueMap.factory(TwoMethods),
        lambda: state_from_url(f"postgresql://me:{SECRET}@host/database"),
        lambda: state_from_url(f"redis+sentinel://me:{SECRET}@one:26379/mymaster/0"),
        lambda: KafkaSpout.opaque("one:9092", "t", settings={"sasl.password": SECRET}),
        lambda: Tester(declared()),
    ],
)
def test_what_is_shown_is_short_and_has_no_secrets(make: Callable[[], Any]) -> None:
    made = make()
    assert SECRET not in repr(made)
    assert " object at " not in repr(made)
    assert len(repr(made)) < 200
    assert "\n" not in repr(made)
    if isinstance(made, Tester):
        made.close()


def test_a_run_its_groups_and_its_queries_say_what_they_are(tmp_path: Path) -> None:
    with declared().start(trigger="available") as run:
        run.awaitTermination()
        assert repr(run) == "Run({'sentences': 'stopped'})"
        assert repr(run.groups["sentences"]) == "SpoutLoop('sentences', 'stopped')"
        assert repr(run.drpc) == "LocalDRPC(functions=['words'])"
