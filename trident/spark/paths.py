"""What the DataFrames of a group read, as Spark names it."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame

from trident.plan.plan import BatchGroup

_FILE_SOURCE = re.compile(r"FileSource\[(.+)\]")


def read_paths(group: BatchGroup) -> dict[str, str]:
    """The paths that streams of files read, by stream id; Spark logs files by their full paths."""
    frames = [source for source in group.sources if source.clock == "dataframe"]
    found = {source.stream_id: _paths(source.source) for source in frames}
    return {stream: paths for stream, paths in found.items() if paths}


def source_kind(frame: DataFrame) -> str:
    """What a streaming DataFrame reads from, as ``FileSource`` or ``kafka``."""
    return f"DataFrame({', '.join(text.partition('[')[0] for text in _told(frame))})"


def _paths(frame: DataFrame) -> str:
    jvm: Any = frame.sparkSession._jvm
    given = [match[1] for text in _told(frame) if (match := _FILE_SOURCE.fullmatch(text))]
    conf = frame.sparkSession._jsparkSession.sessionState().newHadoopConf()
    paths = [jvm.org.apache.hadoop.fs.Path(each) for each in given]
    return ", ".join(path.getFileSystem(conf).makeQualified(path).toString() for path in paths)


def _told(frame: DataFrame) -> list[str]:
    leaves: Any = frame._jdf.queryExecution().analyzed().collectLeaves()
    every = map(leaves.apply, range(leaves.size()))
    return [leaf.toString() for leaf in every if leaf.isStreaming()]
