"""Which tests run when, and in which of several processes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling


class FilesAndHBase(LoadFileScheduling):
    """Tests of a file run in one process, and all of HBase: each process starts its own.

    That takes 20 seconds of computing, and there are two: one that tests hurt.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "HBase" if "hbase" in nodeid.lower() else str(super()._split_scope(nodeid))


def begin_with_the_longest(items: list[pytest.Item]) -> None:
    """Order files so that no process is left alone with a long one at the end.

    Long are those with a test that is marked to take long, and then those with many tests, of which
    one on Spark counts as fifty: it takes about a second. Every fourth file is one of faults or of
    Kafka, as long as there are some: these wait most of their time, while the others compute.
    """
    tests = Counter[Path]()
    for item in items:
        tests[item.path] += 50 if "spark" in item.keywords else 1
    marked = {item.path for item in items if {"slow", "timeout"} & {*item.keywords}}
    order = sorted(tests, key=lambda path: (path not in marked, -tests[path]))
    waiting = [path for path in order if _WAITING.search(f"{path}")]
    order = [path for path in order if path not in waiting]
    for place, path in enumerate(waiting):
        order.insert(2 + 4 * place, path)
    places = {path: place for place, path in enumerate(order)}
    items.sort(key=lambda item: places[item.path])


_WAITING = re.compile("/faults/|/kafka/|_faults|_outages|_sentinel|_takeover")
