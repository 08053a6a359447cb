"""Tuples that partitions of a spout emitted on the executors, and that stay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pickle import PicklingError
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from trident.errors import SpoutPartitionError
from trident.job.job import Source
from trident.operations.origins import ORIGIN
from trident.sources.emission import Emission, Emitted
from trident.spark.access import access_to, checkpoint_frame
from trident.spark.emission_stage import RUN, EmissionStage, KeptRowsKernel
from trident.spark.errors import StatusError
from trident.spark.packed import ROWS
from trident.spark.schemas import Schemas
from trident.spark.seal import Seal
from trident.spark.statuses import STATUS, open_statuses
from trident.spark.versions import collect_table

_STRUCT = f"{RUN} string, {STATUS} string, {ROWS} binary"


@dataclass(frozen=True)
class KeptTuples:
    """The tuples of one stream in one attempt, which the kernel makes of checkpointed rows."""

    frame: DataFrame
    kernel: KeptRowsKernel
    partitions: int
    length: int

    @property
    def rows(self) -> DataFrame:
        """What the kernel reads."""
        return self.frame.select(RUN, ROWS)

    def release(self) -> None:
        """Remove them from the executors; Spark would too, but much later."""
        access_to(self.frame.sparkSession).release(self.frame)


def emit_in_tasks(
    emission: Emission,
    source: Source,
    tasks: int,
    session: SparkSession,
    schemas: Schemas,
    seal: Seal,
) -> tuple[KeptTuples, list[Emitted]]:
    """Emit all partitions of an emission in one Spark job; refuse what no task has reported."""
    declared = {name: kind for name, kind in source.declared.types.items() if kind}
    emitted_fields = [name for name in source.columns if name != ORIGIN]
    types = declared | {name: declared.get(name, "string") for name in emitted_fields}
    arrow = schemas.of(types).arrow
    stage = EmissionStage(
        emission,
        source.name,
        {name: (kind, arrow.field(name).type) for name, kind in types.items()},
        schemas.of({name: types.get(name, "string") for name in source.columns}).arrow,
        tasks,
        seal,
    )
    numbers = session.range(0, tasks, 1, tasks)
    try:
        # The job that reads the status is the one in which rows are kept.
        frame = checkpoint_frame(numbers.mapInArrow(stage, _STRUCT), eager=False)
    except PicklingError as error:
        problem = f"its partitions can't be sent to executors ({error})"
        advice = "Let partitions and conf hold plain values only."
        raise SpoutPartitionError(emission.stream, problem, advice) from None
    statuses = collect_table(frame.where(F.col(STATUS).isNotNull()).select(STATUS))
    runs, found = read_statuses(statuses.column(0).to_pylist(), seal)
    names = [each.partition.getId() for each in emission.assignments]
    if found.keys() != set(names):
        raise StatusError(", ".join(found))
    kernel = KeptRowsKernel(source.name, None, stage.schema, runs)
    length = sum(each.tuples for each in found.values())
    return KeptTuples(frame, kernel, tasks, length), [found[name] for name in names]


def read_statuses(statuses: Sequence[str], seal: Seal) -> tuple[frozenset[str], dict[str, Emitted]]:
    """Return the runs of tasks that have reported, and what each partition has emitted."""
    runs, found = set(), {}
    for document in open_statuses(statuses, seal):
        match document:
            case {"run": str(run), "emitted": list(emitted)}:
                runs.add(run)
                found.update({each.id: each for each in map(_parse_emitted, emitted)})
            case _:
                raise StatusError(f"{document}")
    return frozenset(runs), found


def _parse_emitted(report: Any) -> Emitted:
    match report:
        case [str(name), int(tuples), metadata, None | str() as away]:
            return Emitted(name, tuples, metadata, away)
    raise StatusError(f"{report}")
