"""One streaming query for all DataFrames of a group: their union, taken apart in each batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trident.errors import PlanError
from trident.operations.origins import ORIGIN, origin_of
from trident.spark.checks import SparkGroup
from trident.spark.flow import InputFrame
from trident.spark.natives import native_step
from trident.spark.schemas import quote, select_columns
from trident.spark.versions import forbids_mode

_STREAM = "__trident_stream"


def unite_streams(plan: SparkGroup) -> DataFrame:
    """All streams as one, in the order of their ids: Spark logs offsets by position."""
    return _unite(plan, [source.source for source in plan.group.sources])


def add_history(plan: SparkGroup, batch: DataFrame) -> DataFrame:
    """A batch of :func:`unite_streams`, and before it what the streams have as their histories."""
    histories = [source.history for source in plan.group.sources]
    if all(history is None for history in histories):
        return batch
    return _unite(plan, histories).union(batch)


def _unite(plan: SparkGroup, given: Sequence[DataFrame | None]) -> DataFrame:
    """Unite frames of the group's streams; None stands for a stream without one."""
    sources = plan.group.sources
    if len(sources) == 1:
        return _begin(plan, 0, given[0])
    packed = []
    for index, (source, frame) in enumerate(zip(sources, given, strict=True)):
        begun = _begin(plan, index, source.source if frame is None else frame)
        packed.append(begun.select(F.struct(*map(quote, begun.columns)).alias(f"s{index}")))
    kinds = {frame.columns[0]: frame.schema[0].dataType for frame in packed}
    tagged = []
    for index, frame in enumerate(packed):
        if given[index] is None:
            continue
        columns = [
            F.col(name) if name in frame.columns else F.lit(None).cast(kind).alias(name)
            for name, kind in kinds.items()
        ]
        tagged.append(frame.select(F.lit(index).alias(_STREAM), *columns))
    return reduce(DataFrame.union, tagged)


def split_streams(plan: SparkGroup, frame: DataFrame, *, small: bool) -> dict[str, InputFrame]:
    """The batch of each stream, from a batch of :func:`unite_streams`."""
    # A small batch is made one partition; to ask how many there are would cost it 10 ms.
    partitions = 1 if small else frame.rdd.getNumPartitions()
    streams = [source.stream_id for source in plan.group.sources]
    if len(streams) == 1:
        return {streams[0]: InputFrame(frame, partitions)}
    kept = frame.localCheckpoint(eager=True)  # each stream reads all of it
    return {
        stream: InputFrame(kept.where(F.col(_STREAM) == index).select(f"s{index}.*"), partitions)
        for index, stream in enumerate(streams)
    }


def check_output_mode(plan: SparkGroup) -> None:
    """Spark allows the group's output mode for its streams; it says so itself too late."""
    frame, mode = unite_streams(plan), plan.group.output_mode
    jvm: Any = frame.sparkSession._jvm
    spoken: Any = jvm.org.apache.spark.sql.streaming.OutputMode
    modes = {"append": spoken.Append, "update": spoken.Update, "complete": spoken.Complete}
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), modes[mode]())
    except AnalysisException as error:
        if not forbids_mode(error):
            raise
        names = ", ".join(source.stream_id for source in plan.group.sources)
        what = f"start: Spark can't make batches of {names} in the output mode"
        allowed = [each for each in modes if each != mode]
        advice = (
            'Where a DataFrame aggregates, give newStream or writeStream outputMode="update" for '
            'the rows that changed since the batch before, or "complete" for all of them in every '
            'batch; "append" takes a watermark, and gives each row once, when it can\'t change any '
            "more."
        )
        raise PlanError(what, mode, allowed, advice) from error


def _begin(plan: SparkGroup, index: int, frame: Any) -> DataFrame:
    """A stream up to its last native step before the batch; Spark optimises it as a whole."""
    source = plan.group.sources[index]
    stream = source.stream_id
    columns = plan.large.source(stream).columns.names
    if ORIGIN in columns:
        fields = [F.col(quote(name)).cast("string") for name in source.partition_fields]
        origin = F.concat_ws("/", F.lit(origin_of(stream)), *fields)
        frame = frame.withColumn(ORIGIN, origin)
    for step in plan.prefixes[stream]:
        frame = native_step(frame, step)
    return select_columns(frame, columns)
