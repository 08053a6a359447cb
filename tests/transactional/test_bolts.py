"""Bolts: what they are given, which tasks get what, and what a wrong one is told."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from trident.errors import FailedException, PlanError
from trident.storm import CustomStreamGrouping
from trident.testing import Tester
from trident.transactional import (
    BaseBasicBolt,
    BaseBatchBolt,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)

SEEN: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    SEEN.clear()


class Bolt(BaseBatchBolt):
    """Emits what it takes, and says what it saw."""

    fields = "id, word"

    def prepare(self, conf: Any, context: Any, collector: Any, id: Any) -> None:
        self.context, self.collector, self.id = context, collector, id

    def execute(self, tuple: Any) -> None:
        SEEN.append((self.context.getThisTaskIndex(), *tuple[1:]))
        self.collector.emit([self.id, *tuple[1:]])

    def finishBatch(self) -> None:
        pass

    def declareOutputFields(self, declarer: Any) -> None:
        declarer.declare(self.fields)


class Ends(Bolt):
    """Says when a batch ends."""

    def execute(self, tuple: Any) -> None:
        pass

    def finishBatch(self) -> None:
        SEEN.append((*self.id, self.context.getThisTaskIndex()))


class Committer(Ends, ICommitter):
    pass


def built(*rows: Any, take: int = 100, fields: str = "word") -> TransactionalTopologyBuilder:
    spout = MemoryTransactionalSpout({0: list(rows)}, fields, take)
    return TransactionalTopologyBuilder("words", "spout", spout)


def ran(builder: TransactionalTopologyBuilder) -> list[tuple[Any, ...]]:
    Tester(builder.buildTopology()).run()
    return SEEN


WORDS = [[word] for word in ("a", "b", "c", "a", "b", "a")]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (lambda bolt: bolt.shuffleGrouping("spout"), [2, 2, 2]),
        (lambda bolt: bolt.localOrShuffleGrouping("spout"), [2, 2, 2]),
        (lambda bolt: bolt.noneGrouping("spout"), [2, 2, 2]),
        (lambda bolt: bolt.allGrouping("spout"), [6, 6, 6]),
        (lambda bolt: bolt.globalGrouping("spout"), [6, 0, 0]),
        (lambda bolt: bolt.fieldsGrouping("spout", "id"), [6, 0, 0]),
    ],
)
def test_a_grouping_chooses_the_tasks(group: Callable[[Any], Any], expected: list[int]) -> None:
    builder = built(*WORDS)
    group(builder.setBolt("bolt", Bolt(), 3))
    tasks = [task for task, _ in ran(builder)]
    assert [tasks.count(task) for task in range(3)] == expected


class Numbered(Bolt):
    fields = "id, word, n"


def test_equal_values_go_to_one_task() -> None:
    builder = built(*([word, n] for n in range(4) for word in "abcdefgh"), fields="word, n")
    builder.setBolt("bolt", Numbered(), 4).fieldsGrouping("spout", "word")
    tasks: dict[str, set[int]] = {}
    for task, word, _ in ran(builder):
        tasks.setdefault(word, set()).add(task)
    assert all(len(found) == 1 for found in tasks.values())
    assert len({task for found in tasks.values() for task in found}) > 1


class ByLetter(CustomStreamGrouping):
    def chooseTasks(self, targetTasks: Sequence[int], values: Any) -> Sequence[int]:
        return [targetTasks["abc".index(values["word"])]]


def test_a_grouping_of_ones_own_is_given_the_tuple() -> None:
    builder = built(*WORDS)
    builder.setBolt("bolt", Bolt(), 3).customGrouping("spout", ByLetter())
    assert sorted(set(ran(builder))) == [(0, "a"), (1, "b"), (2, "c")]


class Directing(Bolt):
    def execute(self, tuple: Any) -> None:
        last = self.context.getComponentTasks("bolt")[-1]
        self.collector.emitDirect(last, [self.id, tuple["word"]])


def test_a_tuple_may_be_sent_to_one_task() -> None:
    builder = built(["a"], ["b"])
    builder.setBolt("from", Directing()).shuffleGrouping("spout")
    builder.setBolt("bolt", Bolt(), 3).directGrouping("from")
    assert sorted(ran(builder)) == [(2, "a"), (2, "b")]


class Splitting(Bolt):
    def execute(self, tuple: Any) -> None:
        self.collector.emit("long" if len(tuple["word"]) > 1 else "short", [self.id, tuple[1]])

    def declareOutputFields(self, declarer: Any) -> None:
        declarer.declareStream("long", "id, text")
        declarer.declareStream("short", "id, letter")


class Told(Bolt):
    def execute(self, tuple: Any) -> None:
        source = tuple.getSourceComponent(), tuple.getSourceStreamId()
        SEEN.append((*source, tuple.getFields().names, tuple[1]))


def test_a_bolt_takes_several_streams_and_knows_which() -> None:
    builder = built(["ab"], ["c"], ["def"])
    builder.setBolt("split", Splitting()).shuffleGrouping("spout")
    bolt = builder.setBolt("told", Told())
    bolt.shuffleGrouping("split", "short").globalGrouping("spout")
    assert sorted(ran(builder)) == [
        ("split", "short", ("id", "letter"), "c"),
        ("spout", "default", ("id", "word"), "ab"),
        ("spout", "default", ("id", "word"), "c"),
        ("spout", "default", ("id", "word"), "def"),
    ]


def test_values_of_every_type_arrive_as_they_were() -> None:
    values = ["ä\x00", 2**70, -0.0, None, True, b"\xff", (1, "x"), {"a": [1.5]}]
    builder = built(values, fields="a, b, c, d, e, f, g, h")
    builder.setBolt("told", Kept()).shuffleGrouping("spout")
    assert repr(ran(builder)) == repr([tuple(values)])


class Kept(Bolt):
    def execute(self, tuple: Any) -> None:
        SEEN.append(tuple[1:])


class Exclaim(BaseBasicBolt):
    def execute(self, tuple: Any, collector: Any) -> None:
        collector.emit([tuple["word"] + "!"])

    def declareOutputFields(self, declarer: Any) -> None:
        declarer.declare("id, word")


def test_a_basic_bolt_needs_no_id() -> None:
    builder = built(["a"], ["b"])
    builder.setBolt("basic", Exclaim(), 2).shuffleGrouping("spout")
    builder.setBolt("bolt", Bolt()).globalGrouping("basic")
    assert sorted(ran(builder)) == [(0, "a!"), (0, "b!")]


@pytest.mark.parametrize(("bolt", "tasks"), [(Ends, (0, 1)), (Committer, (0,))])
def test_every_task_ends_a_batch_though_it_got_no_tuple(
    bolt: type[Bolt], tasks: tuple[int, ...]
) -> None:
    builder = built(["a"], ["b"], take=1)
    builder.setBolt("empty", Ends()).shuffleGrouping("spout")
    builder.setBolt("bolt", bolt(), 2).globalGrouping("empty")
    SEEN.clear()
    ends = [(txid, 0, task) for txid in (1, 2) for task in (0, *tasks)]
    assert sorted(ran(builder)) == sorted(ends)


class Failing(Ends):
    def finishBatch(self) -> None:
        super().finishBatch()
        if len(SEEN) < 3:
            raise FailedException("not yet")


@pytest.mark.parametrize(
    ("commits", "attempts"),
    [
        pytest.param(False, [0, 0, 0], id="before its batch has begun, which keeps its number"),
        pytest.param(True, [0, 1, 2], id="after it has begun"),
    ],
)
def test_a_bolt_that_fails_is_run_anew(commits: bool, attempts: list[int]) -> None:
    builder = built(["a"])
    set_bolt = builder.setCommitterBolt if commits else builder.setBolt
    set_bolt("bolt", Failing()).globalGrouping("spout")
    assert ran(builder) == [(1, attempt, 0) for attempt in attempts]


def test_committers_end_batches_in_order_while_others_overlap() -> None:
    builder = built(*([str(n)] for n in range(20)), take=1)
    builder.setBolt("bolt", Bolt()).shuffleGrouping("spout")
    builder.setCommitterBolt("committer", Committer()).globalGrouping("bolt")
    with builder.buildTopology().start(trigger="available", max_pending=4) as run:
        run.awaitTermination(30)
    assert [each[0] for each in SEEN if len(each) == 3] == list(range(1, 21))


def test_what_a_committer_emits_goes_on() -> None:
    builder = built(["a"], ["b"])
    builder.setCommitterBolt("committer", Bolt()).globalGrouping("spout")
    builder.setBolt("after", Bolt()).globalGrouping("committer")
    assert sorted(ran(builder)) == [(0, "a"), (0, "a"), (0, "b"), (0, "b")]


def test_an_attempt_pickles() -> None:
    attempt = TransactionAttempt(7, 1)
    assert pickle.loads(pickle.dumps(attempt)) == attempt


class Wrong(Bolt):
    def __init__(self, emit: Callable[[Any], None]) -> None:
        self.emit = emit

    def execute(self, tuple: Any) -> None:
        self.emit(self)


@pytest.mark.parametrize(
    ("emit", "told"),
    [
        (lambda bolt: bolt.collector.emit([bolt.id]), "values"),
        (lambda bolt: bolt.collector.emit("other", [bolt.id, 1]), "not declared"),
        (lambda bolt: bolt.collector.emit(["a", "b"]), "the first value is the id"),
        (lambda bolt: bolt.collector.emit(), "emit takes"),
        (lambda bolt: bolt.collector.emit([bolt.id, object()]), "can't be sent"),
        (lambda bolt: bolt.context.getComponentTasks("nobody"), "no tuples go"),
    ],
)
def test_a_wrong_emit_is_an_error_that_says_so(emit: Any, told: str) -> None:
    builder = built(["a"])
    builder.setBolt("wrong", Wrong(emit)).shuffleGrouping("spout")
    with pytest.raises(Exception, match=told):
        ran(builder)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda b: b.setBolt("bolt", Bolt).shuffleGrouping("spout"), "expected a bolt"),
        (lambda b: b.setBolt("spout", Bolt()), "already a component"),
        (lambda b: b.setBolt("bolt", Bolt(), 0), "parallelism"),
        (lambda b: b.setBolt("bolt", Bolt()).shuffleGrouping("spuot"), "no component"),
        (lambda b: b.setBolt("bolt", Bolt()).shuffleGrouping("bolt"), "no component"),
        (lambda b: b.setBolt("bolt", Bolt()).shuffleGrouping("spout", "x"), "no stream"),
        (lambda b: b.setBolt("bolt", Bolt()).fieldsGrouping("spout", "wrod"), "no field"),
        (
            lambda b: b.setBolt("bolt", Bolt()).allGrouping("spout").shuffleGrouping("spout"),
            "takes these tuples already",
        ),
        (lambda b: (b.setBolt("bolt", Bolt()), b.buildTopology()), "takes no tuples"),
    ],
)
def test_a_wrong_declaration_is_an_error_at_the_call(wrong: Any, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        wrong(built(["a"]))
