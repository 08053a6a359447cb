"""The Spark engine: what a topology is started on with a session."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark.sql import DataFrame, SparkSession

from trident.batch.engine import Engine
from trident.batch.group_run import GroupRun
from trident.batch.runner import BatchRunner
from trident.batch.start_options import EngineChoice, Trigger
from trident.job.compile import Local, compile_job
from trident.local.group_engine import LocalGroupEngine
from trident.log.checkpoint import Place, is_local
from trident.log.folders import Folder
from trident.plan.nodes import StateNode
from trident.plan.overlap import one_at_a_time_on_spark, only_on_spark
from trident.plan.plan import BatchGroup, Plan
from trident.spark.checks import compile_group
from trident.spark.error_transfer import error_to_show
from trident.spark.errors import SparkSessionError
from trident.spark.group_engine import SparkGroupEngine
from trident.spark.hadoop_folder import HadoopFolder
from trident.spark.mixed_engine import MixedGroupEngine
from trident.spark.quiet import Without
from trident.spark.session import check_session
from trident.spark.settings import own_session
from trident.spark.stream_union import check_output_mode
from trident.spark.streaming_run import StreamingRun
from trident.spark.versions import is_connect
from trident.spark.workers import check_workers
from trident.states.state import State

_FILE_SOURCE = re.compile(r"FileSource\[(.+)\]")
_WITHOUT_LOST = Without(Py4JNetworkError)  # py4j logs in the root logger what it raises as well


class SparkEngine(Engine[SparkGroupEngine | MixedGroupEngine]):
    """Runs groups on Spark, by Structured Streaming or our loop; small batches of spouts here, if
    "auto"."""

    def __init__(self, plan: Plan, spark: SparkSession, choice: EngineChoice) -> None:
        check_session(spark, "start() was given")
        if is_connect(spark):
            _check_clocks(plan)
        check_workers(spark)
        self._spark = self.session = spark
        self._choice = choice
        self._prepared = {
            group.id: compile_group(group, spark) for group in plan.groups if group.requests is None
        }
        for prepared in self._prepared.values():
            if prepared.group.clock == "dataframe":
                check_output_mode(prepared)

    def open(
        self, group: BatchGroup, states: Mapping[StateNode, State]
    ) -> SparkGroupEngine | MixedGroupEngine:
        prepared = self._prepared[group.id]
        if group.clock == "dataframe":
            return SparkGroupEngine(prepared, self._spark, states)
        session = own_session(self._spark, prepared.partitions)
        if self._choice == "spark" or only_on_spark(group):
            return SparkGroupEngine(prepared, session, states)
        here = LocalGroupEngine(group, compile_job(group, Local()), states)
        # What is faster in one partition of Spark's is faster still in this process.
        spark = SparkGroupEngine(prepared, session, states, partitioned=True)
        return MixedGroupEngine(here, spark, prepared.tasks)

    def reads(self, group: BatchGroup) -> Mapping[str, str]:
        frames = [source for source in group.sources if source.clock == "dataframe"]
        found = {source.stream_id: _paths(source.source) for source in frames}
        return {stream: paths for stream, paths in found.items() if paths}

    def source_of(self, source: object) -> str:
        return _source_kind(source) if isinstance(source, DataFrame) else super().source_of(source)

    def folder(self, place: Place) -> Folder:
        text = os.fspath(place)
        return super().folder(text) if is_local(text) else HadoopFolder.at(self.session, text)

    def pending(self, group: BatchGroup, most: int) -> int:
        return most if one_at_a_time_on_spark(group) is None else 1

    def clock(
        self,
        group: BatchGroup,
        opened: SparkGroupEngine | MixedGroupEngine,
        runner: BatchRunner,
        folder: Folder | None,
        trigger: Trigger,
        max_pending: int,
    ) -> GroupRun:
        run: GroupRun
        if folder is None:
            if isinstance(opened, SparkGroupEngine) and max_pending > 1:
                opened.overlap(max_pending)
            run = super().clock(group, opened, runner, folder, trigger, max_pending)
        else:
            assert isinstance(opened, SparkGroupEngine)
            prepared = self._prepared[group.id]
            run = StreamingRun(prepared, opened, runner, folder, trigger, max_pending)
        run.shown = error_to_show
        logging.getLogger().addFilter(_WITHOUT_LOST)
        return run


def _check_clocks(plan: Plan) -> None:
    """Refuse streaming DataFrames on Spark Connect."""
    for group in plan.groups:
        if group.clock == "dataframe":
            raise SparkSessionError(
                f"start: the batches of stream {group.sources[0].stream_id!r}, a streaming "
                "DataFrame, can't be run by Spark Connect: they would run in a process of the "
                "server, which has neither the states nor the log of this one",
                "Use a classic session, such as SparkSession.builder.master(…) makes; or read the "
                "source by a spout, as newStream(id, KafkaSpout(…)).",
            )


def _source_kind(frame: DataFrame) -> str:
    """Return what a streaming DataFrame reads from, as ``FileSource`` or ``kafka``."""
    return f"DataFrame({', '.join(text.partition('[')[0] for text in _source_texts(frame))})"


def _paths(frame: DataFrame) -> str:
    """Return the folders of files that a streaming DataFrame reads, by their full paths."""
    jvm: Any = frame.sparkSession._jvm
    given = [match[1] for text in _source_texts(frame) if (match := _FILE_SOURCE.fullmatch(text))]
    conf = frame.sparkSession._jsparkSession.sessionState().newHadoopConf()
    paths = [jvm.org.apache.hadoop.fs.Path(each) for each in given]
    return ", ".join(path.getFileSystem(conf).makeQualified(path).toString() for path in paths)


def _source_texts(frame: DataFrame) -> list[str]:
    """Return how Spark's plan shows each source."""
    leaves: Any = frame._jdf.queryExecution().analyzed().collectLeaves()
    every = map(leaves.apply, range(leaves.size()))
    return [leaf.toString() for leaf in every if leaf.isStreaming()]
