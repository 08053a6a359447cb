"""How rows move between the partitions of DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import functions as F

from trident.kernels.grouping_kernel import PARTITION
from trident.operations.origins import MADE, ORIGIN
from trident.spark.flow import Flow
from trident.spark.routing import by_key
from trident.spark.schemas import Schemas, quoted, selected
from trident.spark.stage import StageContext
from trident.spark.versions import placed


def gathered(flow: Flow) -> Flow:
    """The flow in one partition."""
    return flow if flow.partitions == 1 else flow.moved(flow.frame.repartition(1), 1)


def dealt(flow: Flow, count: int, *, settled: bool) -> Flow:
    """The flow in so many partitions; where `settled`, as it is if it has as many already."""
    if (settled and flow.partitions == count) or flow.partitions == count == 1:
        return flow
    return flow.moved(flow.frame.repartition(count), count)


def copied(flow: Flow, count: int) -> Flow:
    """Every row once in each partition."""
    copies = F.explode(F.sequence(F.lit(0), F.lit(count - 1))).alias(PARTITION)
    names = tuple(flow.types)
    frame = placed(flow.frame.select(*map(quoted, names), copies), count, PARTITION)
    return flow.moved(selected(frame, names), count)


def chosen(flow: Flow, names: Sequence[str], count: int) -> Flow:
    """The flow with each row in the partition that its column :data:`PARTITION` names."""
    frame = selected(placed(flow.frame, count, PARTITION), names)
    return Flow(frame, {name: flow.types[name] for name in names}, count)


def routed(
    flow: Flow,
    key: Sequence[str],
    count: int,
    schemas: Schemas,
    context: StageContext,
    shards: int | None = None,
) -> Flow:
    """The flow with each key in its own partition, and that partition in a column."""
    types = flow.typed(tuple(flow.types))
    frame = by_key(flow.frame, tuple(key), types, count, schemas, context.seal, shards)
    return Flow(frame, {**types, PARTITION: "int"}, count)


def without_partition(flow: Flow) -> Flow:
    """The flow without the column that :func:`routed` has added."""
    names = tuple([name for name in flow.types if name != PARTITION])
    types = {name: flow.types[name] for name in names}
    return replace(flow, frame=selected(flow.frame, names), types=types)


def met(flow: Flow, key: Sequence[str], count: int) -> Flow:
    """The flow with the rows of each key in one partition, whichever that is."""
    columns = []
    for name, kind in flow.typed(key).items():
        column = F.col(quoted(name))
        # -0.0 and 0.0 are one key, but have two hashes.
        columns.append(column + F.lit(0.0) if kind in ("double", "float") else column)
    return flow.moved(flow.frame.repartition(count, *columns), count)


def with_origin(flow: Flow, names: Sequence[str]) -> Flow:
    """The flow with these columns, of which `ORIGIN` is added."""
    frame = selected(flow.frame.withColumn(ORIGIN, F.lit(MADE)), names)
    return replace(flow, frame=frame, types={**flow.types, ORIGIN: "string"})
