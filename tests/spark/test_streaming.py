"""Structured Streaming as the clock."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.lines import NATIVE_SPLIT, PATIENCE, Lines
from tests.topologies.capture import captured_in
from tests.topologies.test_aggregates import Spread
from trident import Adopt, Count, FixedBatchSpout, TridentTopology
from trident.api.start import start
from trident.backends import sqlite
from trident.batch.events import GroupEnded, GroupStarted
from trident.batch.start_options import StartOptions
from trident.errors import FailedException, PlanError, UsageError
from trident.log.errors import (
    ChangedTopologyError,
    CheckpointInUseError,
    LogMismatchError,
    PlacementError,
)
from trident.operation_error import OperationError
from trident.plan.substitution import plan_rebuild
from trident.spark.versions import progress_of
from trident.states.errors import OtherLogError, StateUnavailableError
from trident.states.maps.moving import swap_states
from trident.testing import fail_at, hold_at


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> Lines:
    return Lines(spark, tmp_path)


@pytest.mark.parametrize("split", [None, NATIVE_SPLIT], ids=["python", "native"])
def test_every_file_is_counted_once_over_restarts(lines: Lines, split: Any) -> None:
    lines.write("the cow", "jumped over\nthe moon")
    lines.count(lines.topology(split))
    assert lines.counts == lines.expected
    lines.count(lines.topology(split))
    lines.write("the  end", "")
    lines.count(lines.topology(split))
    assert (
        lines.counts
        == lines.expected
        == {
            **dict.fromkeys(["cow", "jumped", "over", "moon", "end"], 1),
            "the": 3,
        }
    )


def test_a_history_counts_once_with_the_first_batch(lines: Lines) -> None:
    history = lines.spark.createDataFrame([("the sun",), ("the moon",)], "value string")
    topology = lines.topology(NATIVE_SPLIT, history=history)
    assert 'newStream("lines", DataFrame, history=DataFrame)' in topology.explain()
    lines.write("the cow", "the end")
    with fail_at("after write", txid=1):
        lines.count(topology)
    assert lines.counts == {"the": 4, "sun": 1, "moon": 1, "cow": 1, "end": 1}
    lines.write("sun")
    lines.count(lines.topology(NATIVE_SPLIT, history=history))
    assert lines.counts["sun"] == 2, "at a later start it has no effect"


PLACED = """\
{"topic": "t", "partition": 0, "offset": 0, "at": "2026-01-31T11:59:59.999999Z", "value": "%s a"}
{"topic": "t", "partition": 0, "offset": 1, "at": "2026-01-31T12:00:00Z", "value": "%s b"}
{"topic": "t", "partition": 1, "offset": 0, "at": null, "value": "%s c"}
{"topic": "t", "partition": 1, "offset": 1, "at": "2026-01-31T11:00:00Z", "value": "%s d"}
{"topic": "u", "partition": 0, "offset": 7, "at": "2026-01-31T13:00:00Z", "value": "%s e"}
"""


@pytest.mark.parametrize(
    ("until", "of_history"),
    [
        ({"at": datetime(2026, 1, 31, 12, tzinfo=UTC)}, "ad"),
        ({"t": {"0": 1, 1: 1}}, "ac"),
    ],
    ids=["time", "offsets"],
)
def test_a_history_ends_where_it_is_told_and_there_the_stream_begins(
    lines: Lines, until: Any, of_history: str
) -> None:
    read = {}
    for name in "history", "stream":
        (lines.folder / name).mkdir()
        (lines.folder / name / "1.json").write_text(PLACED.replace("%s", name))
        reader = lines.spark.read if name == "history" else lines.spark.readStream
        schema = "topic string, partition int, offset long, at timestamp, value string"
        read[name] = reader.schema(schema).json(str(lines.folder / name))

    def topology(until: Any) -> TridentTopology:
        made = TridentTopology()
        stream = made.newStream("s", read["stream"], history=read["history"], until=until)
        stream.groupBy("value").persistentAggregate(lines.factory, Count(), "count")
        return made

    lines.count(topology(until))
    assert lines.counts == {
        f"{'history' if letter in of_history else 'stream'} {letter}": 1 for letter in "abcde"
    }
    (lines.folder / "stream" / "2.json").write_text(PLACED.replace("%s", "later"))
    lines.count(topology(until))
    later = [value for value in lines.counts if value.startswith("later")]
    assert sorted(later) == [f"later {each}" for each in "abcde" if each not in of_history]
    with pytest.raises(ChangedTopologyError, match="stream 's' .*history until "):
        lines.start(topology({"offset": 1}))


@pytest.mark.parametrize("trigger", [None, 0])
def test_the_handle_looks_like_a_streaming_query(lines: Lines, trigger: Any) -> None:
    lines.write("a b", "a")
    told: list[Any] = []
    with lines.start(trigger=trigger) as run:
        run.listen(told.append)
        run.processAllAvailable()
        assert run.isActive
        assert run.drpc.execute("words", "a b c") == "[[3]]"
        lines.write("c")
        run.processAllAvailable()
        assert run.drpc.execute("words", "a b c") == "[[4]]"
        assert run.status == {"lines": "running"}
        last = run.lastProgress
        assert last is not None
        assert (last.group, last.txid, last.attempts, last.tuples) == ("lines", 3, 1, 1)
        assert last.keys_written == 1
    assert not run.isActive
    assert run.status == {"lines": "stopped"}
    assert run.exception() is None
    assert [progress.tuples for progress in run.groups["lines"].recentProgress] == [1, 1, 1]
    [group] = run.figures()["groups"]
    assert (group["batches"], group["tuples"], group["keys_written"]) == (3, 3, 4)
    assert [type(told[0]), type(told[-1])] == [GroupStarted, GroupEnded]


def test_what_spark_tells_of_offsets_is_what_they_are(lines: Lines) -> None:
    lines.write("a")
    query = lines.stream().writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination(PATIENCE)
    [source] = progress_of(query)["sources"]
    assert source["endOffset"] == {"logOffset": 0}


def test_stopping_lets_the_batch_under_way_finish(lines: Lines) -> None:
    lines.write("a", "b", "c")
    with hold_at("before commit", txid=2) as hold:
        run = lines.start(trigger=None)
        hold.wait_reached()
        stopping = threading.Thread(target=run.stop)
        stopping.start()
        hold.release()
        stopping.join(PATIENCE)
    assert not run.isActive
    assert run.exception() is None
    assert lines.counts == {"a": 1, "b": 1}
    lines.count()
    assert lines.counts == lines.expected


def test_a_failed_attempt_is_tried_again_and_counts_once(lines: Lines) -> None:
    lines.write("a b a", "b")
    with fail_at("after write", txid=1, times=2):
        lines.count()
    assert lines.counts == lines.expected


def failing_once(folder: Path, error: Exception) -> Any:
    def split(text: str) -> list[str]:
        marker = folder / "failed"
        if not marker.exists():
            marker.touch()
            raise error
        return text.split()

    return split


@pytest.mark.parametrize("kind", ["opaque", "transactional"])
def test_a_function_may_fail_the_attempt_in_a_task(lines: Lines, tmp_path: Path, kind: str) -> None:
    lines.write("a b a", "b")
    failing = failing_once(tmp_path, FailedException("not yet"))
    with lines.start(lines.topology(failing, kind=kind)) as run:
        run.awaitTermination(PATIENCE)
        progress = run.groups["lines"].recentProgress
    assert [batch.attempts for batch in progress] == [2, 1]
    assert lines.counts == lines.expected


def test_a_function_that_finds_its_store_away_in_a_task_costs_no_retry(
    lines: Lines, tmp_path: Path
) -> None:
    lines.write("a b a", "b")
    failing = failing_once(tmp_path, StateUnavailableError("geo", "it is away"))
    with lines.start(lines.topology(failing), retries=0) as run:
        run.awaitTermination(PATIENCE)
        progress = run.groups["lines"].recentProgress
    assert [batch.attempts for batch in progress] == [2, 1]
    assert lines.counts == lines.expected


def inverse(text: str) -> list[str]:
    return [str(1 / len(text))]


def test_a_users_error_comes_first_and_the_batch_is_kept(
    lines: Lines, capfd: pytest.CaptureFixture[str]
) -> None:
    lines.write("ok", "\n")
    run = lines.start(lines.topology(inverse))
    with pytest.raises(OperationError) as raised:
        run.awaitTermination(PATIENCE)
    shown = str(raised.value).splitlines()
    assert shown[0] == "ZeroDivisionError: division by zero"
    assert shown[2].strip() == "return [str(1 / len(text))]"
    assert "batch 2" in "\n".join(shown)
    assert len(shown) <= 15
    run.stop()
    assert run.status == {"lines": "failed"}
    printed = capfd.readouterr()
    assert printed.err + printed.out == ""
    lines.count()
    assert lines.counts == {"0.5": 1}


def test_the_newest_commit_of_spark_may_be_lost(lines: Lines) -> None:
    lines.write("a b", "b c")
    lines.count()
    commits = lines.checkpoint / "lines" / "spark" / "commits"
    (commits / "1").unlink()
    lines.write("c")
    lines.count()
    assert lines.counts == lines.expected


def test_losing_sparks_log_is_an_error_that_names_both(lines: Lines) -> None:
    lines.write("a b", "b c")
    lines.count()
    for name in ("offsets", "commits"):
        for path in (lines.checkpoint / "lines" / "spark" / name).iterdir():
            path.unlink()
    lines.write("c")
    run = lines.start()
    with pytest.raises(PlacementError) as raised:
        run.awaitTermination(PATIENCE)
    run.stop()
    assert str(lines.checkpoint / "lines" / "spark") in str(raised.value)
    assert str(lines.checkpoint / "lines" / "log") in str(raised.value)
    assert lines.counts == {"a": 1, "b": 2, "c": 1}


def test_a_new_checkpoint_on_old_state_is_refused_until_it_adopts(lines: Lines) -> None:
    lines.write("a", "b")
    lines.count()
    old, lines.checkpoint = lines.checkpoint, lines.folder / "another"
    with pytest.raises(OtherLogError):
        lines.start()
    lines.count(adopt=Adopt.from_checkpoint(old))
    assert lines.counts == {"a": 2, "b": 2}  # a new checkpoint reads every file anew


def test_another_path_of_a_stream_is_an_error_that_names_both(lines: Lines, tmp_path: Path) -> None:
    lines.write("a")
    lines.count()
    old, lines.texts = lines.texts, tmp_path / "others"
    lines.texts.mkdir()
    lines.write("b")
    with pytest.raises(LogMismatchError, match="another path of the stream 'lines'") as raised:
        lines.start()
    assert f"it has file:{old}, found file:{lines.texts}." in str(raised.value)
    lines.texts = Path(f"{old}/../{old.name}")
    lines.count()
    assert lines.counts == {"a": 1}


def test_a_checkpoint_in_use_is_refused(lines: Lines) -> None:
    lines.write("a")
    with lines.start(trigger=None) as run:
        run.processAllAvailable()
        with pytest.raises(CheckpointInUseError):
            lines.start()
    assert lines.counts == {"a": 1}


def two_streams(
    spark: SparkSession, folder: Path, names: tuple[str, str], history: dict[str, Any] | None = None
) -> TridentTopology:
    """Count the words of two folders in one state."""
    topology = TridentTopology()
    streams = []
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        frame = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / name))
        renamed = frame.withColumnRenamed("value", f"{name}_text")
        stream = topology.newStream(name, renamed, history=(history or {}).get(name))
        streams.append(stream.each(f"{name}_text", str.split, "word string").project("word"))
    counts = sqlite.opaque(folder / "counts.db", "count")
    topology.merge(streams).groupBy("word").persistentAggregate(counts, Count(), "count")
    return topology


def test_streams_of_one_group_share_their_batches(lines: Lines, tmp_path: Path) -> None:
    history = {"zebras": lines.spark.createDataFrame([("a d",)], "zebras_text string")}
    topology = two_streams(lines.spark, tmp_path, ("zebras", "apes"), history)
    (tmp_path / "zebras" / "1.txt").write_text("a b")
    (tmp_path / "apes" / "1.txt").write_text("b c c")
    with lines.start(topology) as run:
        run.awaitTermination(PATIENCE)
        assert list(run.groups) == ["apes"]
        assert [batch.txid for batch in run.groups["apes"].recentProgress] == [1]
    assert lines.counts == {"a": 2, "b": 2, "c": 2, "d": 1}
    with pytest.raises(LogMismatchError):
        lines.start(two_streams(lines.spark, tmp_path, ("apes", "mice")))


def test_what_a_stream_has_counted_is_built_anew_and_goes_on_there(lines: Lines) -> None:
    lines.write("the cow")
    lines.count()
    lines.checkpoint = lines.folder / "new"
    plan, [swaps] = plan_rebuild(lines.topology().plan(), {"count": "count_2"})
    options = StartOptions(checkpoint=lines.checkpoint, trigger="available")
    with start(plan, lines.spark, options) as run:
        run.awaitTermination(PATIENCE)
    swap_states(swaps)
    lines.write("the end")
    lines.count()
    assert lines.counts == lines.expected
    assert dict(lines.factory.at("count_2").makeState().getTuples()) == lines.expected


def test_a_history_that_does_not_fit_its_stream_is_refused(lines: Lines) -> None:
    spark, stream = lines.spark, lines.stream()
    fitting = spark.createDataFrame([("a",)], "value string")
    for history, options, problem in (
        (stream, {}, "history= takes a batch DataFrame"),
        (spark.createDataFrame([(1,)], "value long"), {}, "history= has other fields"),
        (spark.createDataFrame([("a",)], "line string"), {}, "history= has other fields"),
        (fitting, {"outputMode": "update"}, "outputMode="),
        (None, {"until": {"value": "a"}}, "until= without history="),
        (fitting, {"until": "a"}, "takes a dict, found \"str 'a'\".*A column and a value"),
        (fitting, {"until": {}}, "takes a dict, found 'dict {}'"),
        (fitting, {"until": {"valeu": "a"}}, "names a missing field 'valeu'.*Did you mean 'value'"),
        (fitting, {"until": {"value": 1}}, "takes a string for the field 'value', found 'int 1'"),
        (fitting, {"until": {"value": None}}, "takes a string .* found 'NoneType"),
        (fitting, {"until": {"value": "a", "b": 1}}, "takes one column"),
        (fitting, {"until": {"t": {"0": 1}}}, "Select these columns of Kafka's too"),
    ):
        with pytest.raises(UsageError, match=problem):
            TridentTopology().newStream("lines", stream, history=history, **options)
    spout = FixedBatchSpout("value string", 1, ["a"])
    with pytest.raises(PlanError, match="a spout has no history="):
        TridentTopology().newStream("lines", spout, history=stream)
    columns = "topic string, partition int, offset long, at timestamp_ntz"
    kafka: Any = spark.readStream.schema(columns).json(str(lines.texts))
    of_kafka = spark.createDataFrame([], columns)
    for until, problem in (
        ({"t": {"0": -1}}, "takes the offset of each partition of 't', found .*As in"),
        ({"t": {"x": 1}}, "takes the offset of each partition of 't'"),
        ({"t": {"0": 1, 0: 2}}, "takes the offset of each partition of 't'"),
        ({"t": {0.5: 1}}, "takes the offset of each partition of 't'"),
        ({"t": {}}, "takes the offset of each partition of 't'"),
        (
            {"t": {"0": 1}, "offset": 7},
            "takes the offset of each partition of 'offset', found 'int 7'",
        ),
        ({"at": datetime(2026, 1, 1, tzinfo=UTC)}, "a timestamp_ntz.*another one in each session"),
    ):
        with pytest.raises(UsageError, match=problem):
            TridentTopology().newStream("lines", kafka, history=of_kafka, until=until)


def test_a_shuffled_million_of_words_is_what_a_plain_job_counts(lines: Lines) -> None:
    spark = lines.spark
    frame = spark.range(100_000).selectExpr(
        "concat_ws(' ', transform(sequence(1, 10), i -> concat('w', (id * i) % 4999))) AS value"
    )
    frame.write.mode("overwrite").text(str(lines.texts))
    lines.count()
    rows = frame.selectExpr("explode(split(value, ' ')) AS word").groupBy("word").count().collect()
    assert lines.counts == {row["word"]: row["count"] for row in rows}


def test_a_batch_without_rows_is_aggregated_too(lines: Lines) -> None:
    frame = lines.stream().selectExpr("cast(value as long) as n").filter("n > 0")
    topology = TridentTopology()
    stream = topology.newStream("lines", frame)
    captured = {
        name: captured_in(lines.folder / name, made)
        for name, made in (
            ("count", stream.aggregate(Count(), "made")),
            ("spread", stream.aggregate("n", Spread(), "made")),
            ("of each partition", stream.partitionAggregate("n", Spread(), "made")),
        )
    }
    lines.write("", "0", "7", "0")
    lines.count(topology)
    assert {name: found.batches for name, found in captured.items()} == {
        "count": [[(0,)], [(0,)], [(1,)], [(0,)]],
        "spread": [[([],)], [([],)], [([7, 7],)], [([],)]],
        "of each partition": [[([],)], [([],)], [([7, 7],)], [([],)]],
    }


def test_what_lies_on_disk_is_as_private_as_its_folder(lines: Lines, tmp_path: Path) -> None:
    lines.write("a b")
    before = os.umask(0o077)
    try:
        lines.count()
    finally:
        os.umask(before)
    made = [lines.folder / "counts.db", lines.checkpoint, *lines.checkpoint.rglob("*")]
    # Spark gives its own files their usual modes, below a folder that nobody else can enter.
    own = [path for path in made if lines.checkpoint / "lines" / "spark" not in path.parents]
    assert len(own) > 5
    assert [path for path in own if path.stat().st_mode & 0o077] == []
