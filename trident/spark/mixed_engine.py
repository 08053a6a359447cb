"""Small batches in the driver's process, large ones on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from time import perf_counter

from trident.batch.computed import Computed, Postponed
from trident.batch.outcome import Outcome
from trident.local.group_engine import LocalGroupEngine
from trident.sources.emission import Emission, Emitted
from trident.sources.source import Tuples
from trident.spark.group_engine import SparkGroupEngine
from trident.states.control import ControlRecord

_TELLING = 0.02
"""Seconds from which on what a batch took in this process is due to its tuples."""
_WEIGHT = 0.3
"""Of the latest batch in what is expected."""
_FADING = 0.98
"""What is left of a cost on Spark with each batch that could have told it, and ran here."""
_JOB = 0.15
_SPARK_TUPLE = 0.4e-6
_LOCAL_TUPLE = 0.5e-6
"""Seconds with word counts, on two cores: what is expected at first."""


class Expected:
    """What a batch is expected to take on either engine, from what batches took.

    Spark takes a time for the jobs of a batch, however small it is, and one for each tuple; this
    process takes one for each tuple. Neither engine is given up for one slow batch: what is known
    of the one that is not used is bounded by what the other takes, or fades. `cores` is how many
    tasks Spark runs at the same time.

    Examples
    --------
    >>> expected = Expected(cores=2)
    >>> expected.local_is_faster(100), expected.local_is_faster(10_000_000)
    (True, False)
    >>> for _ in range(2):
    ...     expected.took_locally(10_000, 2.0)  # 200 us a tuple
    >>> expected.local_is_faster(10_000)
    False
    """

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._job = _JOB
        self._spark_tuple = _SPARK_TUPLE
        self._local_tuple = _LOCAL_TUPLE
        self._batches_here = 0
        self._warm_on_spark = False

    def local_is_faster(self, tuples: int) -> bool:
        """Return whether a batch of so many tuples is expected to be faster in this process."""
        return tuples * self._local_tuple <= self._job + tuples * self._spark_tuple

    def took_locally(self, tuples: int, seconds: float) -> None:
        """Learn from a batch that ran in this process."""
        if tuples and seconds >= _TELLING:
            self._batches_here += 1
            # The first one has imported and opened, and most of its keys were new.
            if self._batches_here == 2:
                self._local_tuple = seconds / tuples
            elif self._batches_here > 2:
                self._local_tuple = _weighted(self._local_tuple, seconds / tuples)
        if seconds > self._job:
            self._spark_tuple *= _FADING

    def took_on_spark(self, tuples: int, seconds: float) -> None:
        """Learn from a batch that ran on Spark."""
        if not self._warm_on_spark:  # the first batch has started processes and compiled
            self._warm_on_spark = True
            return
        self._job = min(self._job, seconds)
        if tuples:
            each = (seconds - self._job) / tuples
            # A tuple can't take longer here than all cores took for it there: had it seemed so,
            # that was a batch that began with loading something, or waited.
            self._local_tuple = min(self._local_tuple, max(_LOCAL_TUPLE, each * self._cores))
            # Cores work side by side: a tuple can't take longer there than here.
            self._spark_tuple = min(_weighted(self._spark_tuple, each), self._local_tuple)


def _weighted(known: float, found: float) -> float:
    return known + _WEIGHT * (found - known)


class MixedGroupEngine:
    """Runs each batch of a group of spouts on the engine that is expected to be faster.

    Both work on the same states, so it is of no consequence for the result which one it was. What
    one has computed it writes as well. Lives on the driver; used by the run's own thread, but for
    :meth:`write`. `cores` is how many tasks Spark runs at the same time.
    """

    def __init__(self, local: LocalGroupEngine, spark: SparkGroupEngine, cores: int) -> None:
        self.acts_on_nothing = local.acts_on_nothing
        self._local = local
        self._spark = spark
        self._expected = Expected(cores)

    def read(self, emission: Emission) -> tuple[Tuples, list[Emitted]]:
        """Emit partitions where they are always emitted with a session: on executors."""
        return self._spark.read(emission)

    def compute(self, record: ControlRecord, emitted: Mapping[str, Tuples]) -> Computed | Postponed:
        """Run all steps of a batch but its updates; see `GroupEngine.compute`."""
        tuples = sum(each.length for each in emitted.values())
        locally = self._expected.local_is_faster(tuples)
        engine = self._local if locally else self._spark
        began = perf_counter()
        computed = engine.compute(record, emitted)
        if isinstance(computed, Computed):
            self._learn(computed.outcome.engine, tuples, began)
        return computed

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do what is left of a batch where it was computed; see `GroupEngine.write`."""
        if isinstance(computed, Computed):
            engine = self._local if computed.outcome.engine == "local" else self._spark
            return engine.write(record, computed)
        began = perf_counter()
        outcome = computed.run(record)
        self._learn(computed.engine, computed.tuples, began)
        return outcome

    def drop(self, emitted: Mapping[str, Tuples]) -> None:
        """Let go of tuples that are not computed."""
        self._spark.drop(emitted)

    def _learn(self, engine: str, tuples: int, began: float) -> None:
        """Learn what a batch took that has not failed."""
        took = self._expected.took_locally if engine == "local" else self._expected.took_on_spark
        took(tuples, perf_counter() - began)

    def close(self) -> None:
        """Close both engines, and the states."""
        with ExitStack() as closing:
            closing.callback(self._spark.close)
            closing.callback(self._local.close)
