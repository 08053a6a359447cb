"""Which files a group reads, as Spark names them."""

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


def _paths(frame: DataFrame) -> str:
    jvm: Any = frame.sparkSession._jvm
    leaves: Any = frame._jdf.queryExecution().analyzed().collectLeaves()
    told = [leaves.apply(index).toString() for index in range(leaves.size())]
    given = [match[1] for text in told if (match := _FILE_SOURCE.fullmatch(text))]
    conf = frame.sparkSession._jsparkSession.sessionState().newHadoopConf()
    paths = [jvm.org.apache.hadoop.fs.Path(each) for each in given]
    return ", ".join(path.getFileSystem(conf).makeQualified(path).toString() for path in paths)
