"""A bad tuple doesn't stop a stream, on both engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from tests.topologies.conftest import PATIENCE, Engine, contents, feed
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.backends.urls import state_from_url
from trident.batch.errors import TooManyBadTuplesError
from trident.batch.watchpoints import watching
from trident.errors import BadRowsError, OperationError, PlanError
from trident.operations.builtin import SnapshotGet, Sum
from trident.operations.callables import native
from trident.operations.vectorised import vectorised
from trident.spouts.feeder import FeederBatchSpout
from trident.spouts.fixed import FixedBatchSpout
from trident.states.errors import FailedException
from trident.states.values import Token
from trident.testing import fail_at

FIELDS = "text string, day date, data binary"
DAY = date(2026, 1, 2)
DIVIDE = 'each(n, inverse, part, on_error="skip")'


def parsed(text: str) -> int:
    if not text.isdigit():
        raise ValueError(f"no number: {text}")
    return int(text)


def inverse(n: int) -> list[float]:
    return [1 / n]


def is_small(n: int) -> bool:
    if n == 5:
        raise ValueError("five")
    return n < 100


def digits(n: int) -> Iterator[int]:
    yield n
    if n == 7:
        raise ValueError("seven")


def even(batch):  # type: ignore[no-untyped-def]
    import pyarrow as pa

    odd = {row: "odd" for row, n in enumerate(batch.column(0).to_pylist()) if n % 2}
    if odd:
        raise BadRowsError(odd)
    return pa.record_batch([batch.column(0)], ["n"])


def test_bad_tuples_are_left_out_and_counted_by_step(engine: Engine) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("text string")
    numbers = (
        topology.newStream("numbers", spout)
        .withColumn("n long", int, "text", on_error="skip")
        .project("n")
        .each("n", inverse, "part", on_error="skip")
        .filter("n", is_small)
        .project("n")
        .flatMap(digits, "n")
        .map(lambda n: "eight" if n == 8 else n)
        .flatMap(vectorised(even), "n long")
    )
    captured = engine.capture(numbers)
    with engine.start(topology, on_error="skip") as run:
        feed(run, spout, [("2",), ("x",), ("4",), ("0",), ("500",)], [(str(n),) for n in range(9)])
        bad = [dict(each.bad_tuples) for each in run.groups["numbers"].recentProgress]
        figures = run.figures()["groups"][0]["bad_tuples"]
    assert captured.batches == [[(2,), (4,)], [(2,), (4,), (6,)]]
    steps = [
        'withColumn(n, int, text, on_error="skip")',
        DIVIDE,
        "filter(n, is_small)",
        "flatMap(digits, n)",
        "map(<lambda>)",
        "flatMap(vectorised(even), n)",
    ]
    assert bad == [{steps[0]: 1, steps[1]: 1}, dict(zip(steps[1:], [1, 1, 1, 1, 2], strict=True))]
    assert figures == Counter(bad[0]) + Counter(bad[1])


def test_too_many_bad_tuples_stop_the_run_before_their_batch_counts(engine: Engine) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("n long")
    stream = topology.newStream("numbers", spout).each("n", inverse, "part", on_error="skip")
    captured = engine.capture(stream.project("n"))
    run = engine.start(topology, max_errors=0.002)
    feed(run, spout, [(0,), (1,), (0,)])  # 2 of the last 1,000
    with pytest.raises(TooManyBadTuplesError, match=r"3 of the last 5 tuples.* Batch 2 is kept"):
        feed(run, spout, [(0,), (2,)])
    run.stop()
    assert run.groups["numbers"].recentProgress[-1].txid == 1
    assert captured.tuples[0] == (1,)


def test_batches_that_overlap_count_their_own_bad_tuples(engine: Engine) -> None:
    numbers = [(int(place >= batch),) for batch in range(5) for place in range(4)]
    topology = TridentTopology()
    stream = topology.newStream("numbers", FixedBatchSpout("n long", 4, *numbers))
    parts = stream.each("n", inverse, "part", on_error="skip")
    parts.persistentAggregate(MemoryMapState.Factory(), "n", Sum(), "sum")
    with engine.start(topology, trigger="available", max_pending=3) as run:
        assert run.awaitTermination(PATIENCE)
        bad = [each.bad_tuples.get(DIVIDE, 0) for each in run.groups["numbers"].recentProgress]
    assert bad == [0, 1, 2, 3, 4]


def test_mended_steps_count_a_batch_anew_that_had_too_many_bad_tuples(tmp_path: Path) -> None:
    state = f"sqlite:{tmp_path / 'sums.db'}?prefix=sums&kind=transactional"

    def run(parse: Callable[[str], int]) -> None:
        topology = TridentTopology()
        spout = FixedBatchSpout("key string, text string", 3, ("a", "1"), ("a", "x"), ("b", "2"))
        topology.newStream("s", spout).withColumn("n long", parse, "text", on_error="skip").groupBy(
            "key"
        ).persistentAggregate(state, "n", Sum(), "sums")
        log = tmp_path / "log"
        with topology.start(checkpoint=log, trigger="available", max_errors=0.0) as started:
            started.awaitTermination(60)

    with pytest.raises(TooManyBadTuplesError):
        run(parsed)
    run(lambda text: 10 if text == "x" else int(text))
    with closing(state_from_url(state).makeState()) as sums:
        assert sums.multiGet([("a",), ("b",)]) == [11, 2]


def test_what_a_failed_attempt_left_out_is_not_counted_for_the_next(engine: Engine) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("n long")
    first = engine.folder / "first"
    first.touch()

    def ask(total: int) -> int:
        if first.exists():
            first.unlink()
            raise FailedException("the service is away")
        return total

    parts = topology.newStream("numbers", spout).each("n", inverse, "part", on_error="skip")
    total = parts.aggregate("n", Sum(), "sum").shuffle().parallelismHint(2)
    asked = total.withColumn("total long", ask, "sum")
    asked.persistentAggregate(MemoryMapState.Factory(), "total", Sum(), "all")
    with engine.start(topology) as run:
        feed(run, spout, [(0,), (1,), (2,)])
        [progress] = run.groups["numbers"].recentProgress
    assert (progress.attempts, progress.bad_tuples) == (2, {DIVIDE: 1})


def test_dead_letters_are_kept_once_with_their_batch_whatever_is_tried_again(
    engine: Engine,
) -> None:
    topology, spout, letters = TridentTopology(), FeederBatchSpout(FIELDS), MemoryMapState.Factory()
    first = engine.folder / "first"
    first.touch()

    def fails_at_first(n: int) -> int:
        if n == 3 and first.exists():
            raise ValueError("only in the first attempt")
        return 12 // n

    numbers = topology.newStream("numbers", spout).withColumn("n long", parsed, "text")
    parts = numbers.withColumn("part long", fails_at_first, "n").project("n, part")
    twice = topology.merge(parts, parts)
    captured = engine.capture(twice)
    twice.groupBy("part").persistentAggregate(MemoryMapState.Factory(), "n", Sum(), "sum")

    def watch(point: str, token: Token) -> None:
        if token.txid == 3 and point == "after write":
            first.unlink(missing_ok=True)

    with engine.start(topology, on_error="dead-letter", dead_letters=letters) as run:
        feed(run, spout, [("1", DAY, b""), ("x", DAY, b"\0"), ("0", DAY, None)], [("2", DAY, b"")])
        with watching(watch), fail_at("after write"):
            feed(run, spout, [("3", DAY, b""), ("y", DAY, None)])
        assert run.groups["numbers"].recentProgress[-1].attempts == 2
    assert captured.batches == [[(1, 12)] * 2, [(2, 6)] * 2, [(3, 4)] * 2]
    kept = contents(letters.named("dead_letters.numbers"))
    assert len(kept) == 3
    assert {(key[0], letter["error"]) for key, letter in kept.items()} == {
        (1, "ValueError: no number: x"),
        (1, "ZeroDivisionError: integer division or modulo by zero"),
        (3, "ValueError: no number: y"),
    }
    tuples = sorted(letter["tuple"] for letter in kept.values())
    day = '"day": {"$date": "2026-01-02"}'
    assert tuples == [
        f'{{"text": "0", {day}, "data": null, "n": 0}}',
        f'{{"text": "x", {day}, "data": {{"$binary": "AA=="}}}}',
        f'{{"text": "y", {day}, "data": null}}',
    ]


def test_a_join_goes_on_without_keys_that_no_engine_can_compare() -> None:
    topology = TridentTopology()
    ones = topology.newStream("ones", FixedBatchSpout("a", 4, (1,), (2**70,), ({1: 2},), (2,)))
    others = topology.newStream("others", FixedBatchSpout("b, c", 4, (1, "x"), (object(), "y")))
    joined = topology.join(ones, "a", others, "b", "n long, c string", on_error="skip")
    steps = [node["text"] for node in topology.to_dict()["nodes"]]
    started(joined, topology, expected={steps[2]: 2, steps[3]: 1})
    assert steps[2] == 'join(a, KeyFits(), on_error="skip")'


def started(stream: Stream, topology: TridentTopology, expected: object = None) -> None:
    stream.aggregate("n", Sum(), "sum").persistentAggregate(
        MemoryMapState.Factory(), "sum", Sum(), "total"
    )
    with topology.start(trigger="available") as run:
        run.awaitTermination(60)
        if expected is not None:
            assert run.recentProgress[-1].bad_tuples == expected


def test_a_bad_tuple_is_handed_to_the_function_three_times_at_most() -> None:
    calls: Counter[int] = Counter()

    def called(n: int) -> int:
        calls[n] += 1
        return 1 // (n % 50)

    topology = TridentTopology()
    numbers = topology.newStream("s", FixedBatchSpout("n long", 500, *((n,) for n in range(500))))
    started(numbers.map(called, on_error="skip"), topology)
    assert set(calls) == set(range(500))
    assert max(calls.values()) == 3


def test_a_function_that_changes_its_input_is_tried_again_on_the_values_that_came(
    engine: Engine,
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("lists array<long>")
    letters = MemoryMapState.Factory()
    stream = topology.newStream("s", spout)
    first = stream.withColumn("n long", lambda n: n.pop(0) // n[0], "lists", on_error="dead-letter")
    captured = engine.capture(first.project("n"))
    with engine.start(topology, dead_letters=letters) as run:
        feed(run, spout, [([6, 2],), ([7],), ([8, 2],), ([9, 0],)])
    assert captured.batches == [[(3,), (4,)]]
    kept = [letter["tuple"] for letter in contents(letters.named("dead_letters.s")).values()]
    assert sorted(kept) == ['{"lists": [7]}', '{"lists": [9, 0]}']


def test_what_fails_the_attempt_is_retried_and_not_left_out() -> None:
    away = [True]

    def ask(n: int) -> int:
        if n == 2 and away:
            away.clear()
            raise FailedException("the service is away")
        return n

    topology = TridentTopology()
    numbers = topology.newStream("s", FixedBatchSpout("n long", 3, (1,), (2,), (3,)))
    state = numbers.map(ask, on_error="skip").persistentAggregate(
        MemoryMapState.Factory(), "n", Sum(), "total"
    )
    topology.newDRPCStream("total").stateQuery(state, SnapshotGet(), "t")
    with topology.start(trigger="available", on_error="skip") as run:
        run.awaitTermination(60)
        [progress] = run.groups["s"].recentProgress
        assert (progress.attempts, progress.bad_tuples) == (2, {})
        assert run.drpc.execute("total", "") == '[["",6]]'


def test_a_function_of_record_batches_may_tell_one_bad_row_after_the_other() -> None:
    def first(batch):  # type: ignore[no-untyped-def]
        raise BadRowsError({0: "the first"})

    topology = TridentTopology()
    rows = [(n,) for n in range(1_200)]  # deeper than Python's stack
    numbers = topology.newStream("s", FixedBatchSpout("n long", 1_200, *rows))
    step = 'flatMap(vectorised(first), n, on_error="skip")'
    told = numbers.flatMap(vectorised(first), "n long", on_error="skip")
    started(told, topology, expected={step: 1_200})


def test_the_bad_rows_of_a_record_batch_may_be_numbers_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")

    def refuse(batch):  # type: ignore[no-untyped-def]
        odd = numpy.flatnonzero(batch.column(0).to_numpy() % 2)
        if len(odd):
            raise BadRowsError(dict.fromkeys(odd, "odd"))
        return batch

    topology = TridentTopology()
    numbers = topology.newStream("s", FixedBatchSpout("n long", 3, (1,), (2,), (3,)))
    step = 'flatMap(vectorised(refuse), n, on_error="skip")'
    told = numbers.flatMap(vectorised(refuse), "n long", on_error="skip")
    started(told, topology, expected={step: 2})


def test_a_record_batch_whose_bad_rows_are_not_told_stops_the_run() -> None:
    def refuse(batch):  # type: ignore[no-untyped-def]
        raise BadRowsError({7: "not there"})

    topology = TridentTopology()
    numbers = topology.newStream("s", FixedBatchSpout("n long", 3, (1,), (2,)))
    with pytest.raises(OperationError, match="bad rows of a record batch"):
        started(numbers.flatMap(vectorised(refuse), "n long", on_error="skip"), topology)


def test_on_error_is_refused_where_it_can_have_no_effect() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", FeederBatchSpout("n long"))
    with pytest.raises(PlanError, match="each: unknown on_error 'skipp'.*Did you mean 'skip'"):
        stream.each("n", inverse, "part", on_error="skipp")  # type: ignore[call-overload]
    with pytest.raises(PlanError, match="filter: Spark can't leave out tuples that fail"):
        stream.filter(native("n > 1"), on_error="skip")
    with pytest.raises(PlanError, match="each: a request has no on_error, found 'skip'"):
        topology.newDRPCStream("f").each("args", str.split, "word", on_error="skip")
    with pytest.raises(PlanError, match="max_errors is a share from 0 to 1, found '2'"):
        topology.start(max_errors=2)
