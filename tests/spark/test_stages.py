"""Stages of Python, without Spark: what they make of record batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from trident import Count, Fields, Filter, Function, Split, TridentCollector, TridentTuple
from trident.kernels.aggregate_kernels import CombinerKernel
from trident.kernels.arrow_block import block_of_table
from trident.kernels.kernel import Kernel
from trident.kernels.keys import encoded_keys
from trident.kernels.task import StepName
from trident.kernels.tuple_kernels import EachKernel, FilterKernel
from trident.operation_error import OperationError
from trident.operations.callables import CallableFunction
from trident.spark.error_transfer import StageFailure, error_to_show, stage_failure
from trident.spark.errors import SparkFailure
from trident.spark.schemas import ROW
from trident.spark.seal import Seal
from trident.spark.stage import OUTPUT_ROWS, PythonStage, StageContext
from trident.states.control import ControlRecord
from trident.states.errors import FailedException, StateUnavailableError
from trident.states.keys import encode_keys
from trident.states.values import Token
from trident.tuples.block import NOTHING

STEP = StepName("each(text, f, word)", "job.py:7")
CONTEXT = StageContext(ControlRecord("a1", Token(3, 1)))


def run(
    kernels: Sequence[Kernel], table: pa.Table, *outputs: pa.Field, size: int = 1_000_000
) -> list[pa.RecordBatch]:
    makers = tuple((field.name, STEP) for field in outputs if field.name not in table.schema.names)
    stage = PythonStage(tuple(kernels), pa.schema(outputs), makers, CONTEXT, 1)
    return list(stage(table.to_batches(max_chunksize=size)))


def rows(batches: Sequence[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


TEXTS = pa.table({"id": [1, 2, 3], "text": ["a b", None, "c"]})
WORD = pa.field("word", pa.string())
ID = pa.field("id", pa.int64())


class Lengths(Function):
    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        text = tuple.getStringByField("text")
        if text is not None:
            collector.emit([text, len(text)])


class Odd(Filter):
    def isKeep(self, tuple: TridentTuple) -> bool:
        return bool(tuple["id"] % 2)


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_columns_that_are_needed_are_carried_along(size: int) -> None:
    split = EachKernel(STEP, Split(), Fields("text"), ("id",), ("word",))
    odd = FilterKernel(STEP, Odd(), Fields("id"), ("id", "word"))
    made = run([split, odd], TEXTS, WORD, ID, size=size)
    assert rows(made) == [("a", 1), ("b", 1), ("c", 3)]


def test_only_what_is_needed_is_made() -> None:
    split = EachKernel(STEP, Split(), Fields("text"), (), ("word",))
    assert rows(run([split], TEXTS, WORD)) == [("a",), ("b",), ("c",)]


def test_collectors_emit_rows_of_several_fields() -> None:
    lengths = EachKernel(STEP, Lengths(), Fields("text"), ("id",), ("word", "n"))
    made = run([lengths], TEXTS, ID, WORD, pa.field("n", pa.int32()))
    assert rows(made) == [(1, "a b", 3), (3, "c", 1)]


def test_a_stage_of_which_only_the_rows_count_hands_them_on() -> None:
    split = EachKernel(STEP, Split(), Fields("text"), (), ("word",))
    [batch] = run([split], TEXTS, pa.field(ROW, pa.bool_()))
    assert batch.num_rows == 3


def test_what_explodes_leaves_in_bounded_batches() -> None:
    many = EachKernel(STEP, CallableFunction(lambda n: range(n)), Fields("id"), (), ("n",))
    made = run([many], pa.table({"id": [50_000, 3]}), pa.field("n", pa.int64()))
    assert sum(batch.num_rows for batch in made) == 50_003
    assert max(batch.num_rows for batch in made) <= OUTPUT_ROWS


def test_partitions_combine_by_encoded_key() -> None:
    table = pa.table({"key": pa.array([0.0, -0.0, 1.5, None], pa.float64())})
    count = CombinerKernel(STEP, Count(), ("key",), Fields(), ("n",))
    made = run([count], table, pa.field("key", pa.float64()), pa.field("n", pa.int64()))
    assert rows(made) == [(0.0, 2), (1.5, 1), (None, 1)]


def error_of(kernels: Sequence[Kernel], *outputs: pa.Field) -> BaseException:
    """What the driver makes of a stage that raises."""
    with pytest.raises(StageFailure) as raised:
        run(kernels, TEXTS, *outputs)
    return error_to_show(raised.value, CONTEXT.seal)


def upper(text: Any) -> list[Any]:
    return [text.upper()]


def test_an_error_names_step_line_batch_and_tuple() -> None:
    failing = EachKernel(STEP, CallableFunction(upper), Fields("text"), (), ("word",))
    error = error_of([failing], WORD)
    assert isinstance(error, OperationError)
    assert error.error == "AttributeError: 'NoneType' object has no attribute 'upper'"
    assert (error.step, error.declared) == ("each(text, f, word)", "job.py:7")
    assert (error.txid, error.attempt, error.row) == (3, 1, "text=None")
    assert "return [text.upper()]" in error.frames[-1]


def test_a_value_of_another_type_than_declared_names_value_and_step() -> None:
    counting = EachKernel(STEP, CallableFunction(lambda text: [1]), Fields("text"), (), ("word",))
    error = error_of([counting], WORD)
    assert "emitted int 1 for the field 'word', which is declared string" in str(error)
    assert "job.py:7" in str(error)


def test_text_that_is_no_unicode_names_value_and_step() -> None:
    broken = EachKernel(STEP, CallableFunction(lambda _: ["\ud800"]), Fields("text"), (), ("word",))
    assert r"emitted str '\ud800' for the field 'word'" in str(error_of([broken], WORD))


def fails(text: Any) -> list[Any]:
    raise StateUnavailableError("geo", "it sleeps", "Wait.")


def test_a_failed_attempt_stays_one_across_the_jvm() -> None:
    failing = EachKernel(STEP, CallableFunction(fails), Fields("text"), (), ("word",))
    error = error_of([failing], WORD)
    assert isinstance(error, StateUnavailableError)
    assert error.args == ("geo", "it sleeps", "Wait.")


def test_an_error_of_the_users_keeps_its_meaning_and_text() -> None:
    class Local(FailedException):
        pass

    seal = Seal()
    error = error_to_show(stage_failure(Local("gone"), seal), seal)
    assert type(error) is FailedException
    assert str(error) == "Local: gone"


@pytest.mark.parametrize(
    "keys", [["a", "b"], ["a", None], ["\0a", "b"], ["é", ""]], ids=["plain", "null", "nul", "odd"]
)
def test_keys_are_encoded_as_a_column_as_one_by_one(keys: list[str | None]) -> None:
    block = block_of_table(pa.table({"key": pa.array(keys, pa.string())}))
    assert encoded_keys(block, ("key",)) == encode_keys([(key,) for key in keys])


def test_no_keys_of_an_empty_block() -> None:
    assert encoded_keys(NOTHING, ("key",)) == []


def test_an_error_whose_text_is_long_or_no_unicode_crosses_the_jvm() -> None:
    seal = Seal()
    raised = stage_failure(ValueError("\ud800" * 100_000), seal)
    readable, sealed = str(raised).encode().splitlines()  # as Spark's worker writes it
    assert len(readable) <= 1_000
    assert r"\ud800" in str(error_to_show(raised, seal))
    assert sealed


class Thrown:
    """What the JVM threw, as Py4J shows it."""

    def __init__(self, *classes: str, cause: Thrown | None = None) -> None:
        self._classes = classes
        self._cause = cause

    def getClass(self) -> Thrown:
        return self

    def getName(self) -> str:
        return self._classes[0]

    def getSuperclass(self) -> Thrown | None:
        return Thrown(*self._classes[1:]) if self._classes[1:] else None

    def getCause(self) -> Thrown | None:
        return self._cause

    def getMessage(self) -> str:
        return "what it says"


class OfJVM(Exception):
    """An error that PySpark has no class for."""

    def __init__(self, java_exception: Thrown, text: str = "") -> None:
        super().__init__(f"An error occurred while calling o7.save.{text}")
        self.java_exception = java_exception


LOST = Thrown("org.apache.spark.SparkException", "java.lang.Exception")
GONE = Thrown("org.apache.spark.sql.kafka010.KafkaIllegalStateException")
REFUSED = Thrown("java.lang.UnsupportedOperationException", "java.lang.RuntimeException")


@pytest.mark.parametrize(
    ("thrown", "expected"),
    [
        (LOST, FailedException),
        (Thrown("java.io.EOFException", "java.io.IOException"), FailedException),
        (Thrown("java.lang.RuntimeException", cause=LOST), FailedException),
        (REFUSED, SparkFailure),
        (Thrown("org.apache.spark.SparkException", cause=GONE), SparkFailure),
    ],
)
def test_an_error_of_the_jvm_fails_the_attempt_only_where_it_may_pass(
    thrown: Thrown, expected: type[Exception]
) -> None:
    assert type(error_to_show(OfJVM(thrown))) is expected


def test_what_lost_a_batch_is_told_by_its_first_cause() -> None:
    text = (
        "\n: org.apache.spark.SparkException: Exception in awaitResult:\n\tat a.B.c(D.java:7)"
        "\nCaused by: org.apache.spark.SparkException: Job aborted\n\tat a.B.c(D.java:7)"
        "\nCaused by: java.util.concurrent.TimeoutException: Cannot fetch record\n\t... 3 more"
    )
    told = "Spark lost the batch: java.util.concurrent.TimeoutException: Cannot fetch record"
    assert str(error_to_show(OfJVM(LOST, text))) == told
    assert str(error_to_show(OfJVM(LOST))) == (
        "Spark lost the batch: An error occurred while calling o7.save."
    )
