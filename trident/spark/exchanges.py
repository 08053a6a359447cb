"""How rows move between the partitions of DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import functions as F

from trident.kernels.grouping_kernel import PARTITION
from trident.operations.origins import MADE, ORIGIN
from trident.spark.flow import Flow
from trident.spark.routing import place_by_key
from trident.spark.schemas import Schemas, quote, select_columns
from trident.spark.stage import StageContext
from trident.spark.versions import place_rows


def gather(flow: Flow) -> Flow:
    """Bring all rows into one partition."""
    return flow if flow.partitions == 1 else flow.with_frame(flow.frame.repartition(1), 1)


def spread(flow: Flow, count: int, *, settled: bool) -> Flow:
    """Spread the rows over `count` partitions; if `settled`, leave a flow that has as many."""
    if (settled and flow.partitions == count) or flow.partitions == count == 1:
        return flow
    return flow.with_frame(flow.frame.repartition(count), count)


def broadcast(flow: Flow, count: int) -> Flow:
    """Copy every row into each partition."""
    copies = F.explode(F.sequence(F.lit(0), F.lit(count - 1))).alias(PARTITION)
    names = tuple(flow.types)
    frame = place_rows(flow.frame.select(*map(quote, names), copies), count, PARTITION)
    return flow.with_frame(select_columns(frame, names), count)


def move_to_chosen(flow: Flow, names: Sequence[str], count: int) -> Flow:
    """Move each row to the partition that its column :data:`PARTITION` names."""
    frame = select_columns(place_rows(flow.frame, count, PARTITION), names)
    return Flow(frame, {name: flow.types[name] for name in names}, count)


def route_by_key(
    flow: Flow,
    key: Sequence[str],
    count: int,
    schemas: Schemas,
    context: StageContext,
    shards: int | None = None,
) -> Flow:
    """Move each key to its own partition, and add that as a column."""
    types = flow.types_of(tuple(flow.types))
    frame = place_by_key(flow.frame, tuple(key), types, count, schemas, context.seal, shards)
    return Flow(frame, {**types, PARTITION: "int"}, count)


def drop_partition(flow: Flow) -> Flow:
    """Remove the column that :func:`route_by_key` has added."""
    names = tuple([name for name in flow.types if name != PARTITION])
    types = {name: flow.types[name] for name in names}
    return replace(flow, frame=select_columns(flow.frame, names), types=types)


def collocate_keys(flow: Flow, key: Sequence[str], count: int) -> Flow:
    """Bring the rows of each key into one partition; Spark chooses which."""
    columns = []
    for name, kind in flow.types_of(key).items():
        column = F.col(quote(name))
        # -0.0 and 0.0 are one key, but have two hashes.
        columns.append(column + F.lit(0.0) if kind in ("double", "float") else column)
    return flow.with_frame(flow.frame.repartition(count, *columns), count)


def add_origin(flow: Flow, names: Sequence[str]) -> Flow:
    """Return the flow with these columns; the column `ORIGIN` is added."""
    frame = select_columns(flow.frame.withColumn(ORIGIN, F.lit(MADE)), names)
    return replace(flow, frame=frame, types={**flow.types, ORIGIN: "string"})
