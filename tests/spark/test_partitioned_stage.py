"""What runs in the tasks that emit partitions, and what the driver believes of it; no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.shelves import OpaqueShelf, Part, Shelf
from trident import Fields
from trident.errors import EmittedValueError, FailedException, SourceUnavailableError
from trident.kernels.arrow_block import blocks
from trident.kernels.task import StepName, Task
from trident.sources.emission import Assignment, Emission, Emitting
from trident.spark import live_emitters
from trident.spark.arrow_collector import ArrowCollector
from trident.spark.emission_stage import RUN, EmissionStage, KeptRowsKernel
from trident.spark.error_json import error_to_json
from trident.spark.errors import StatusError
from trident.spark.kept_tuples import read_statuses
from trident.spark.live_emitters import MOST, live_emitter
from trident.spark.packed import ROWS
from trident.spark.seal import Seal
from trident.spark.statuses import STATUS
from trident.states.errors import StateUnavailableError
from trident.states.values import Token
from trident.tuples.block import Block

STEP = StepName('newStream("numbers", OpaqueShelf)', "job.py:3")
SCHEMA = pa.schema({"number": pa.int64()})


@pytest.fixture(autouse=True)
def _no_emitters() -> Iterator[None]:
    live_emitters._live.clear()
    yield
    live_emitters._live.clear()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(str(tmp_path))
    for name in "abc":
        made.add(name, [(name, ord(name))])
    return made


def emission(shelf: Shelf, *names: str, run: str = "run", stream: str = "numbers") -> Emission:
    spout = OpaqueShelf(shelf)
    given = tuple(Assignment(Part(name), None, again=False) for name in names)
    return Emission(stream, spout, spout.getOutputFields(), {}, run, Token(1, 0), given)


def stage(given: Emission, tasks: int, seal: Seal) -> EmissionStage:
    types = {"number": ("long", pa.int64())}
    return EmissionStage(given, STEP, types, SCHEMA, tasks, seal)


def rows_of(made: EmissionStage, number: int) -> pa.RecordBatch:
    """What a task gives."""
    given = pa.RecordBatch.from_pydict({"id": [number]})
    table = pa.Table.from_batches(list(made([given])))
    [batch] = table.combine_chunks().to_batches()
    return batch


def read(kernel: KeptRowsKernel, *batches: pa.RecordBatch) -> list[Any]:
    """The numbers that a kernel reads."""
    columns = [batch.select([RUN, ROWS]) for batch in batches]
    found = kernel.run(blocks(columns), Task(1, None, 0, 1))
    return [number for block in found for number in block.values("number")]


def test_each_task_emits_every_nth_partition_and_tells_of_it_last(shelf: Shelf) -> None:
    seal = Seal()
    made = stage(emission(shelf, "a", "b", "c"), 2, seal)
    batches = [rows_of(made, number) for number in (0, 1)]
    for batch in batches:
        assert len(set(batch.column(RUN).to_pylist())) == 1
        assert [status is None for status in batch.column(STATUS).to_pylist()][-1:] == [False]
    runs, found = read_statuses([batch.column(STATUS).to_pylist()[-1] for batch in batches], seal)
    assert {name: each.tuples for name, each in found.items()} == {"a": 1, "b": 1, "c": 1}
    kernel = KeptRowsKernel(STEP, None, SCHEMA, runs)
    assert [read(kernel, batch) for batch in batches] == [[97, 99], [98]]
    assert read(kernel, *batches) == [97, 99, 98]


def test_what_another_run_of_a_task_left_is_not_read(shelf: Shelf) -> None:
    """As where Spark runs a copy of a slow task, or one again whose executor was lost."""
    seal = Seal()
    made = stage(emission(shelf, "a", "b", "c"), 1, seal)
    told, kept = rows_of(made, 0), rows_of(made, 0)
    runs, _ = read_statuses([told.column(STATUS).to_pylist()[-1]], seal)
    kernel = KeptRowsKernel(STEP, None, SCHEMA, runs)
    assert read(kernel, told) == [97, 98, 99]
    with pytest.raises(FailedException, match="has run a task that emits partitions again"):
        read(kernel, kept)
    shelf.put("away-a")
    nothing = rows_of(stage(emission(shelf, "a"), 1, seal), 0)
    assert nothing.num_rows == 1
    with pytest.raises(FailedException):
        read(kernel, nothing)


def test_no_status_is_believed_but_what_a_task_of_the_attempt_has_sealed(shelf: Shelf) -> None:
    seal = Seal()
    done: Any = {"done": {"run": "r", "emitted": [["a", 3, {"end": 3}, None]]}}
    runs, found = read_statuses([seal.sign(done)], seal)
    assert runs == {"r"}
    assert found["a"].metadata == {"end": 3}
    for status in (
        "",
        "trident-sealed:",
        Seal().sign(done),
        seal.sign({"done": {"run": "r"}}),
        seal.sign({"done": {"run": 1, "emitted": []}}),
        seal.sign({"done": {"run": "r", "emitted": [["a", "3", None, None]]}}),
        seal.sign({"done": {"run": "r", "emitted": [["a", 3, None]]}}),
    ):
        with pytest.raises(StatusError):
            read_statuses([status], seal)


@pytest.mark.parametrize("away", [StateUnavailableError, SourceUnavailableError])
def test_a_task_that_fails_while_another_finds_its_source_away_costs_no_retry(away: Any) -> None:
    seal = Seal()
    errors = [FailedException("no"), away("here", "it is away")]
    with pytest.raises(away):
        read_statuses([seal.sign(error_to_json(error)) for error in errors], seal)


# Columns.


def collector(**types: tuple[str, pa.DataType]) -> ArrowCollector:
    return ArrowCollector("the spout", Fields(*types), types)


def emitted(given: pa.Array, declared: str, wanted: pa.DataType) -> Block:
    """What becomes of a column x of Arrow."""
    taking = collector(x=(declared, wanted))
    taking.emitColumns(pa.RecordBatch.from_arrays([given], names=["x"]))
    [block] = taking.blocks()
    return block


@pytest.mark.parametrize(
    ("given", "declared", "wanted"),
    [
        (pa.array(["a", None]), "string", pa.string()),
        (pa.array([b"a"]), "binary", pa.binary()),
        (pa.array([[1, None], None]), "array<long>", pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_columns_of_arrow_are_neither_copied_nor_looked_at(
    given: pa.Array, declared: str, wanted: pa.DataType
) -> None:
    block = emitted(given, declared, wanted)
    column = block.arrow("x")
    assert column.type == wanted
    assert column.buffers()[-1].address == given.buffers()[-1].address


@pytest.mark.parametrize(
    ("given", "declared", "wanted"),
    [
        (pa.array([1, None]), "long", pa.int64()),
        (pa.array([1.5, None]), "double", pa.float64()),
        (pa.array([1], pa.timestamp("us", "UTC")), "timestamp", pa.timestamp("us", "Asia/Tokyo")),
    ],
    ids=str,
)
def test_numbers_of_arrow_are_copied_as_numpy_may_have_their_memory(
    given: pa.Array, declared: str, wanted: pa.DataType
) -> None:
    block = emitted(given, declared, wanted)
    assert block.arrow("x").equals(given.cast(wanted))
    assert block.arrow("x").buffers()[-1].address != given.buffers()[-1].address


@pytest.mark.parametrize(
    ("given", "declared", "wanted"),
    [
        (pa.array([1, None], pa.int8()), "long", pa.int64()),
        (pa.array(["ü", None], pa.large_string()), "string", pa.string()),
        (pa.array(["ü", None]).dictionary_encode(), "string", pa.string()),
        (pa.array([0.5], pa.float32()), "double", pa.float64()),
        (pa.array([1, None]), "int", pa.int32()),
        (pa.array([1, 2]), "double", pa.float64()),
        (pa.nulls(2), "string", pa.string()),
        (pa.array([1], pa.timestamp("s", "UTC")), "timestamp", pa.timestamp("us", "UTC")),
    ],
    ids=str,
)
def test_columns_of_another_arrow_type_become_the_declared_one(
    given: pa.Array, declared: str, wanted: pa.DataType
) -> None:
    block = emitted(given, declared, wanted)
    assert block.arrow("x").type == wanted
    assert block.values("x") == given.to_pylist()


@pytest.mark.parametrize(
    ("given", "declared", "wanted"),
    [
        (pa.array([1.5]), "long", pa.int64()),
        (pa.array([2**31]), "int", pa.int32()),
        (pa.array([2**63], pa.uint64()), "long", pa.int64()),
        (pa.array(["1"]), "long", pa.int64()),
        (pa.array([True]), "long", pa.int64()),
        (pa.array([1]), "string", pa.string()),
        (pa.array([["a"]]), "array<long>", pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_columns_whose_values_do_not_fit_name_the_field(
    given: pa.Array, declared: str, wanted: pa.DataType
) -> None:
    taking = collector(x=(declared, wanted))
    taking.emitColumns(pa.RecordBatch.from_arrays([given], names=["x"]))
    with pytest.raises(EmittedValueError, match="the spout emitted .* for the field 'x'"):
        taking.blocks()


def test_rows_and_columns_stay_in_the_order_in_which_they_were_emitted() -> None:
    taking = collector(n=("long", pa.int64()), word=("string", pa.string()))
    taking.emit([1, "a"])
    taking.emitColumns(pa.RecordBatch.from_pydict({"word": ["b"], "n": [2]}))
    taking.emitColumns({"n": [3], "word": [None]})
    chunks = pa.chunked_array([[5], [6]])
    taking.emit([4, "ü"])
    taking.emitColumns(pa.table({"n": chunks, "word": ["c", "d"]}))
    given = [row for block in taking.blocks() for row in block.tuples(["n", "word"])]
    assert given == [(1, "a"), (2, "b"), (3, None), (4, "ü"), (5, "c"), (6, "d")]


# Emitters.


def used(shelf: Shelf, run: str, stream: str) -> Emitting:
    given = emission(shelf, run=run, stream=stream)
    return live_emitter(given, lambda: Emitting(given, STEP))


def test_an_emitter_lives_as_long_as_its_run_is_the_stream_s_last(shelf: Shelf) -> None:
    first = used(shelf, "one", "numbers")
    other = used(shelf, "one", "others")
    assert used(shelf, "one", "numbers") is first
    assert used(shelf, "two", "numbers") is not first
    assert [event for _, event in shelf.events] == ["made", "made", "closed", "made"]
    assert used(shelf, "one", "others") is other


def test_where_there_are_too_many_emitters_the_one_used_longest_ago_is_closed(
    shelf: Shelf,
) -> None:
    streams = [f"s{number}" for number in range(MOST)]
    made = [used(shelf, "run", stream) for stream in streams]
    assert used(shelf, "run", "s0") is made[0]
    used(shelf, "run", "one more")
    assert [event for _, event in shelf.events].count("closed") == 1
    assert used(shelf, "run", "s0") is made[0]
    assert used(shelf, "run", "s1") is not made[1]


def test_an_emitter_that_can_not_be_closed_is_let_go_of_with_a_warning(
    shelf: Shelf, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    emitting = used(shelf, "one", "numbers")
    monkeypatch.setattr(emitting, "close", lambda: 1 / 0)
    assert used(shelf, "two", "numbers") is not emitting
    assert "an emitter of stream numbers could not be closed" in caplog.text
