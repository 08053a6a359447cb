"""Calls that Trident has and this library hasn't: an `AttributeError` that says what to use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

_RESOURCES = (
    "Resources belong to the session: set spark.executor.memory, spark.executor.cores and the like "
    "where it is made, and parallelismHint() for the number of partitions."
)
_LOADS = dict.fromkeys(("setCPULoad", "setMemoryLoad", "addSharedMemory"), _RESOURCES)
_METRICS = (
    "Count with registerCounter(name), or measure with a client of your own, made in prepare(); "
    "what batches did is in BatchProgress."
)
_ONE_FAMILY = "A chain has calls of one sort only: end it with chainEnd(), or begin another."

ABSENT: Mapping[str, Mapping[str, str]] = {
    "TridentTopology": {
        "build": "Start the topology with start(); plan() and explain() show what was declared.",
        "setResourceDefaults": _RESOURCES,
        "setMasterCoordResources": _RESOURCES,
    },
    "Stream": _LOADS,
    "GroupedStream": {
        "aggPartition": "aggregate() moves the tuples of a group by itself.",
        "singleEmitPartitioner": "aggregate() gives one result of a group by itself.",
    },
    "TridentState": _LOADS,
    "ChainedAggregatorDeclarer": {"chainEnd": "The chain has no aggregator yet."},
    "ChainedFullAggregatorDeclarer": {"partitionAggregate": _ONE_FAMILY},
    "ChainedPartitionAggregatorDeclarer": {"aggregate": _ONE_FAMILY},
    "TridentCollector": {
        "reportError": (
            "Raise the error: FailedException has the batch tried again, any other stops the run. "
            "To tell only, use a logger."
        ),
        "flush": "Leave it out: what is emitted goes on at once.",
    },
    "TridentOperationContext": {
        **dict.fromkeys(("registerMetric", "registerTimer"), _METRICS),
        **dict.fromkeys(("registerMeter", "registerHistogram"), _METRICS),
        **dict.fromkeys(("registerGauge", "registerMetricSet"), _METRICS),
        "makeProjectionFactory": 'Write tuple.select("a, b").',
    },
}
"""What to use instead, by class and call."""


class Published:
    """A class that Trident published, some of whose calls are absent here."""

    if not TYPE_CHECKING:  # to which any call would be there

        def __getattr__(self, name):
            absent = f"{type(self).__name__!r} object has no attribute {name!r}"
            for kind in type(self).__mro__:
                if name in ABSENT.get(kind.__name__, ()):
                    raise AttributeError(f"{absent}. {ABSENT[kind.__name__][name]}")
            raise AttributeError(absent)
