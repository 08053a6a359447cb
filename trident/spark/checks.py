"""The jobs of a group on Spark, and what Spark can't run of it, found when it is started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from trident.errors import FieldError, OperationTypeError
from trident.job.compile import Spark, compile_job
from trident.job.job import ByKey, Chosen, Gather, Job, Kernels, LookUp, NativeStep, Update
from trident.job.native import native_prefixes, without_prefixes
from trident.job.passes import partitions_asked
from trident.kernels.kernel import Kernel
from trident.kernels.task import StepName
from trident.plan.nodes import Node
from trident.plan.plan import BatchGroup, Part
from trident.spark.access import access_to
from trident.spark.natives import makes_rows
from trident.spark.settings import default_partitions
from trident.spouts.classic import has_partitions

_OURS = "__trident"


@dataclass(frozen=True)
class SparkGroup:
    """A batch group with its jobs: for `large` batches, `few` aggregates, or a `small` batch."""

    group: BatchGroup
    partitions: int
    tasks: int
    large: Job
    few: Job
    small: Job
    prefixes: Mapping[str, tuple[NativeStep, ...]]


def compile_group(group: BatchGroup, spark: SparkSession) -> SparkGroup:
    """Return a group as Spark runs it; refuse what can't be sent to workers, or has no type."""
    partitions, tasks = most_partitions(group, spark), access_to(spark).parallelism
    large = compile_job(group, Spark(partitions))
    few = compile_job(group, Spark(partitions, few=True))
    small = compile_job(group, Spark(partitions, few=True, small=True))
    check_names(group.nodes, spark)
    check_pickling(large, {each.stream_id: each.source for each in group.sources})
    if group.clock == "spout":
        return SparkGroup(group, partitions, tasks, large, few, small, {})
    prefixes = native_prefixes(large, makes_rows)
    large, few, small = (without_prefixes(job, makes_rows) for job in (large, few, small))
    return SparkGroup(group, partitions, tasks, large, few, small, prefixes)


def most_partitions(part: Part, spark: SparkSession) -> int:
    """How many partitions an exchange makes where nothing else is said."""
    asked, _ = partitions_asked(part.steps)
    return max([default_partitions(spark), *(each or 1 for each in asked.values())])


def check_names(nodes: Sequence[Node], spark: SparkSession) -> None:
    """No field is named like the engine's columns, or as another but for case that Spark
    ignores."""
    for node in nodes:
        for name in node.fields:
            if name.lower().startswith(_OURS):
                what = f"{node.origin.call} at {node.origin}: on Spark no field can be named"
                raise FieldError(what, name, (), f"Names that begin with {_OURS} are taken.")
    if spark.conf.get("spark.sql.caseSensitive") == "true":
        return
    for node in nodes:
        known: dict[str, str] = {}
        for name in node.fields:
            other = known.setdefault(name.lower(), name)
            if other != name:
                what = (
                    f"{node.origin.call} at {node.origin}: Spark doesn't tell {name!r} from the "
                    "field"
                )
                advice = "Rename one of them, or set spark.sql.caseSensitive to true."
                raise FieldError(what, other, (), advice)


def check_pickling(job: Job, spouts: Mapping[str, object] = MappingProxyType({})) -> None:
    """All that executors use pickles; Spark would print a traceback, and name no step."""
    for stream, spout in spouts.items():
        if has_partitions(spout):
            _check_pickles(spout, job.source(stream).name, "getEmitter()")
    for name, sent in _list_sent(job):
        _check_pickles(sent, name, "prepare()")


def _check_pickles(sent: object, name: StepName, made: str) -> None:
    try:
        cloudpickle.dumps(sent)  # type: ignore[no-untyped-call]
    except Exception as error:
        what = f"{name.call} at {name.declared}: can't be sent to executors ({error}):"
        advice = f"Make what can't be pickled, such as connections and locks, in {made}."
        raise OperationTypeError(what, name.text, (), advice) from error


def _list_sent(job: Job) -> Iterator[tuple[StepName, object]]:
    for stage in job.stages:
        match stage.exchange:
            case ByKey(combine=Kernel() as kernel) | Gather(combine=Kernel() as kernel):
                yield kernel.step, kernel.operation
            case Chosen(kernel):
                yield kernel.step, kernel.operation
        for step in stage.steps:
            match step:
                case Kernels():
                    yield step.name, step.kernels[0].operation
                case LookUp(on_driver=False):
                    yield from ((each.step, each.operation) for each in step.row.queries)
                    yield from ((step.name, state.factory) for state in step.states)
                case Update(on_driver=False):
                    yield step.name, step.kernel.operation
                    yield step.name, step.state.factory
