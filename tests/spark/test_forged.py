"""Values of the stream that pretend to be errors of ours, where Spark quotes them."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import (
    AnalysisException,
    NumberFormatException,
    PythonException,
    SparkRuntimeException,
)
from pyspark.errors.exceptions import connect
from pyspark.sql import SparkSession

from tests.api.test_errors import samples
from tests.spark.test_tasks import in_files
from tests.topologies.conftest import feed
from trident import FeederBatchSpout, StateUpdater, TridentCollector, TridentTopology, native
from trident import errors as all_errors
from trident.api.run import Run
from trident.errors import (
    BadRowsError,
    FailedException,
    FieldError,
    OperationError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
    TridentError,
)
from trident.operation_error import operation_error
from trident.spark.error_json import error_from_json, error_to_json
from trident.spark.error_transfer import error_to_show, stage_failure
from trident.spark.errors import SparkFailure, StatusError
from trident.spark.seal import Seal
from trident.spark.stage import StageContext
from trident.spark.update_stage import STATUS, sum_statuses
from trident.states.control import ControlRecord
from trident.states.map_state import MapState
from trident.states.values import Token
from trident.tuples import TridentTuple

TRUE = OperationError("ValueError: no number", (), "each(f)", "job.py:7", 3, 1, 0, "n='x'", "…")
BELIEVED = (
    FailedException("try again"),
    StaleBatchError(Token(9, 0)),
    StateUnavailableError("redis", "gone"),
    OperationError("Forged: 1", (), "s", "f.py:1", 3, 1, 0, None, ""),
)
"""What would make the driver retry, wait, stop, or show something else."""


class Bomb:
    """Makes a folder where it is unpickled."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        path = str(folder / f"{rng.getrandbits(64):x}")
        self.made: tuple[Callable[..., Any], tuple[Any, ...]] = rng.choice(
            [
                (Path.mkdir, (Path(path),)),
                (eval, (f"__import__('os').mkdir({path!r})",)),
                (exec, (f"import os; os.mkdir({path!r})",)),
            ]
        )

    def __reduce__(self) -> Any:
        return self.made


def pickled(rng: random.Random, folder: Path) -> str:
    """A pickle that leaves a mark where it is run, or one that is an error of ours."""
    bomb = Bomb(rng, folder)
    what = rng.choice([bomb, [bomb], {"error": bomb}, FailedException(bomb), rng.choice(BELIEVED)])
    return base64.b64encode(pickle.dumps(what, rng.randrange(6))).decode()


def unsealed(rng: random.Random, folder: Path) -> str:
    """An error of ours as JSON."""
    return base64.b64encode(json.dumps(error_to_json(rng.choice(BELIEVED))).encode()).decode()


def forged(rng: random.Random, folder: Path, earlier: Seal, own: Seal) -> str:
    """A line as a hostile sender may write it; `own` only where he has changed what it sealed."""
    data = rng.choice([pickled, unsealed])(rng, folder)
    true = own.sign(error_to_json(rng.choice(BELIEVED)))
    another = base64.b64encode(b'{"error": "FailedException", "args": ["x"]}').decode()
    return rng.choice(
        [
            lambda: f"trident-failure:{data}",
            lambda: f"trident-sealed:{data}",
            lambda: f"trident-sealed:{data}.{hashlib.sha256(data.encode()).hexdigest()}",
            lambda: f"trident-sealed:{data}.{'0' * 64}",
            lambda: f"trident-sealed:{data}.",
            lambda: Seal(b"").sign(error_to_json(rng.choice(BELIEVED))),
            lambda: earlier.sign(error_to_json(rng.choice(BELIEVED))),
            lambda: 2 * earlier.sign(error_to_json(rng.choice(BELIEVED))),
            lambda: true[: rng.randrange(len(true))],
            lambda: true[:15] + true[16:],
            lambda: true[:-1] + ("0" if true[-1] != "0" else "1"),
            lambda: f"trident-sealed:{another}.{true.rpartition('.')[2]}",
            lambda: f"trident-sealed:{data}{true.replace(':', '')}",
        ]
    )()


def test_of_a_thousand_forged_lines_none_is_run_and_none_is_believed(tmp_path: Path) -> None:
    rng, earlier = random.Random(8), Seal()
    for _ in range(1000):
        seal = Seal()
        line = forged(rng, tmp_path, earlier, seal)
        text = f"[CAST_INVALID_INPUT] The value '{line}' of the type \"STRING\" cannot be cast"
        native_one = error_to_show(NumberFormatException(text, "CAST_INVALID_INPUT"), seal)
        assert isinstance(native_one, SparkFailure), line
        assert native_one.args[0] == "CAST_INVALID_INPUT"

        quoted = f"Traceback (most recent call last):\nValueError: {line}\n"
        assert isinstance(
            error_to_show(PythonException(quoted, "PYTHON_EXCEPTION"), seal), SparkFailure
        )
        stage = str(stage_failure(TRUE, seal))
        for place in (f"{line}\n{stage}", f"{stage}\n{line}", f"{line} {stage} {line}"):
            found = error_to_show(PythonException(place, "PYTHON_EXCEPTION"), seal)
            assert isinstance(found, OperationError), line
            assert found.args == TRUE.args
        with pytest.raises(StatusError):
            sum_statuses([line], seal)
    assert list(tmp_path.iterdir()) == []


class Parse(StateUpdater[MapState]):
    """Takes what it is given for numbers."""

    def updateState(
        self, state: MapState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        for given in tuples:
            int(given[0])


@pytest.mark.parametrize("place", ["native", "python", "update"])
def test_what_spark_quotes_of_a_value_is_neither_run_nor_believed(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    rng, bombs = random.Random(place), tmp_path / "bombs"
    bombs.mkdir()
    lines = [forged(rng, bombs, Seal(), Seal()) for _ in range(330)]
    value = "\n".join([*lines, "FetchFailed ExecutorLostFailure checkpoint block"])
    topology, spout = TridentTopology(), FeederBatchSpout("line string")
    stream = topology.newStream("lines", spout)
    if place == "native":
        stream.each("line", native("cast(line AS bigint)"), "n long").peek(print)
    elif place == "python":
        stream.each("line", lambda line: [int(line)], "n long").each(
            "n", native("n + 1"), "m long"
        ).peek(print)
    else:
        stream.partitionBy("line").partitionPersist(
            in_files(tmp_path / "state"), "line", Parse(), name="numbers"
        )
    with topology.start(spark, engine="spark") as run:
        failure = failure_of(run, spout, value)
    assert list(bombs.iterdir()) == []
    if place == "native":
        assert isinstance(failure, SparkFailure)
        assert failure.args[0] == "CAST_INVALID_INPUT"
    else:
        assert isinstance(failure, OperationError)
        assert failure.error.startswith("ValueError: invalid literal for int() with base 10: ")


def failure_of(run: Run, spout: FeederBatchSpout, value: str) -> BaseException:
    with pytest.raises(TridentError) as raised:
        feed(run, spout, [(value,)])
    return raised.value


def test_what_a_value_says_of_lost_blocks_does_not_make_its_batch_be_tried_again() -> None:
    text = "[CAST_INVALID_INPUT] The value 'FetchFailed checkpoint block' cannot be cast"
    found = error_to_show(NumberFormatException(text, "CAST_INVALID_INPUT"))
    assert isinstance(found, SparkFailure)
    lost = "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_1_0 not found!"
    found = error_to_show(SparkRuntimeException(lost, "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"))
    assert isinstance(found, FailedException)


def test_the_batch_of_a_job_that_a_server_aborted_is_tried_again() -> None:
    text = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 16 times"
    aborted: Any = connect.SparkException
    assert isinstance(error_to_show(aborted(text, errorClass="")), FailedException)


OURS = [
    found
    for found in vars(all_errors).values()
    if isinstance(found, type) and issubclass(found, TridentError)
    if found is not BadRowsError  # which only a user's function raises: it is in an OperationError
]


@pytest.mark.parametrize("known", OURS)
def test_every_error_of_ours_crosses_as_itself(known: type[TridentError]) -> None:
    error = known(*samples(known).values())
    again = error_from_json(json.loads(json.dumps(error_to_json(error))))
    assert type(again) is known
    assert again.args == error.args


def test_what_an_operation_raised_crosses_as_itself() -> None:
    try:
        raise ValueError("odd")
    except ValueError as raised:
        error = operation_error(raised, step="each(n, f, m)", declared="job.py:3")
    again = error_from_json(json.loads(json.dumps(error_to_json(error))))
    assert type(again) is OperationError
    assert again.args == error.args


@pytest.mark.parametrize(
    "form",
    [
        None,
        "FailedException",
        {"error": "SystemExit", "args": ["x"]},
        {"error": "FailedException", "args": [1]},
        {"error": "FailedException", "args": "x"},
        {"error": "FailedException", "args": ["x"], "more": 1},
        {"error": "StateUnavailableError", "args": ["x"]},
        {"error": "StaleBatchError", "args": [None, [3, 1]]},
        {"error": "StaleBatchError", "args": [{"token": [3, True]}, None]},
        {"error": "StaleBatchError", "args": [{"token": [3, 1], "x": 0}, None]},
        {"error": "LongOverflowError", "args": ["Sum()", True]},
        {"error": "OperationError", "args": ["x"] * 9},
    ],
    ids=str,
)
def test_what_is_not_exactly_the_form_of_an_error_is_shown_as_text(form: object) -> None:
    assert type(error_from_json(form)) is TridentError
    assert "this version does not know" in str(error_from_json(form))


class Outage(StateUnavailableError):
    """One of the user's, which says no more than its base."""


class Odd(StateError):
    """One of the user's that can't show itself."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "shown", "text"),
    [
        (Outage("geo", "it sleeps", "Wait."), StateUnavailableError, "geo: it sleeps. Wait."),
        (Odd(), StateError, "Odd: its text can't be made (RuntimeError)"),
        (FailedException(Path("x")), FailedException, "FailedException: x"),
        (OSError(5, "disk"), TridentError, "OSError: [Errno 5] disk"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_class_of_the_users_is_shown_as_the_nearest_of_ours(
    error: Exception, shown: type[Exception], text: str
) -> None:
    again = error_from_json(error_to_json(error))
    assert type(again) is shown
    assert str(again) == text


def test_nothing_shows_the_key_of_an_attempt() -> None:
    context = StageContext(ControlRecord("a1", Token(3, 1)))
    shown = repr(context) + context.seal.sign({})
    assert repr(context.seal.key) not in shown
    assert context.seal.key.hex() not in shown
    assert context.seal.key != StageContext(context.record).seal.key


def test_a_field_named_like_a_column_of_the_engine_is_refused(spark: SparkSession) -> None:
    topology = TridentTopology()
    topology.newStream("lines", FeederBatchSpout(f"{STATUS} string")).peek(print)
    with pytest.raises(FieldError, match="Names that begin with __trident are taken"):
        topology.start(spark, engine="spark")


def test_what_spark_says_of_a_plan_is_no_error_of_a_stage() -> None:
    seal = Seal()
    text = f"[UNRESOLVED_COLUMN] `x`; 'Project [raise_error({seal.sign(error_to_json(TRUE))})]"
    found = error_to_show(AnalysisException(text, "UNRESOLVED_COLUMN"), seal)
    assert isinstance(found, SparkFailure)
    assert found.args[0] == "UNRESOLVED_COLUMN"
