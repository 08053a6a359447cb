"""What is measured: a word count by one contender, in batches of one size; and how it came out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.words import KEYS

STORES = ("memory", "SQLite", "Redis")
LOCAL, MIXED = "local", "mixed"
SPARK_CONTENDERS = ("Spark, spout", "Spark, DataFrame")
OURS = (LOCAL, MIXED, *SPARK_CONTENDERS)
OTHERS = (
    "Spark's aggregation",
    "foreachBatch by hand",
    "bytewax",
    "bytewax, counted first",
)
KEYS_CONTENDERS = (LOCAL, "Spark, DataFrame", *OTHERS[:3])
"""Who is measured with other numbers of distinct words."""
_OF_SPARK = OTHERS[:2]
"""Those that have nothing like a state in memory."""


@dataclass(frozen=True)
class Case:
    """One row: a contender, a store, a size.

    Parameters
    ----------
    contender : str
        Who counts: one of `OURS` or `OTHERS`.
    store : str
        Where the counts go: one of `STORES`.
    words : int
        In a batch.
    keys : int
        Distinct words, all of which are in the store before the first batch that is timed.
    """

    contender: str
    store: str
    words: int
    keys: int = KEYS

    def __str__(self) -> str:
        return f"{self.contender}; {self.store}; {self.words:,} words a batch; {self.keys:,} keys"


@dataclass(frozen=True)
class Timed:
    """How one run of a case came out.

    Parameters
    ----------
    case : Case
        The case.
    batches : sequence of float
        How long each batch took from its emission to its acknowledgement, in seconds.
    seconds : float
        How long all of them took.
    on_spark : float
        Which share of them Spark ran.
    """

    case: Case
    batches: Sequence[float]
    seconds: float
    on_spark: float = 0.0

    @property
    def rate(self) -> float:
        """Words a second."""
        return len(self.batches) * self.case.words / self.seconds

    def __str__(self) -> str:
        time = f"p50 {median(self.batches) * 1e3:,.2f} ms"
        ran = f"{len(self.batches)} batches, {self.on_spark:.0%} on Spark"
        return f"{self.case!s:<78} {self.rate:>11,.0f} words/s  {time}  ({ran})"


@dataclass(frozen=True)
class Measured:
    """How the runs of a case came out."""

    case: Case
    runs: Sequence[Timed]

    @property
    def rate(self) -> float:
        """Words a second of the run in the middle."""
        return median(run.rate for run in self.runs)

    @property
    def spread(self) -> float:
        """Half of what lies between the slowest run and the fastest, as a share of `rate`."""
        rates = [run.rate for run in self.runs]
        return (max(rates) - min(rates)) / 2 / self.rate

    @property
    def p50(self) -> float:
        """The median batch of all runs, in seconds."""
        return median(self._batches)

    @property
    def p99(self) -> float:
        """The batch that 1 of 100 exceeds, in seconds; of fewer than 100 the slowest."""
        few = len(self._batches) < 100
        return max(self._batches) if few else quantiles(self._batches, n=100)[98]

    @property
    def on_spark(self) -> float:
        """Which share of the batches Spark ran."""
        return sum(run.on_spark for run in self.runs) / len(self.runs)

    @property
    def _batches(self) -> Sequence[float]:
        return [seconds for run in self.runs for seconds in run.batches]


@dataclass(frozen=True)
class Effort:
    """How long a run of the benchmark may take.

    Parameters
    ----------
    name : str
        What it is called.
    sizes : sequence of int
        The sizes of batches, in words.
    keys : sequence of int
        How many distinct words there are, at `keys_at` words a batch.
    keys_at : int
        That size.
    seconds : float
        How long a case of spouts emits.
    spark_batches : int
        How many batches of a streaming DataFrame are timed, fewer where they are large.
    flat_to : int
        How many words the longest run counts, to see that a word's cost stays.
    steady : sequence of str
        Who runs `steady_batches` batches, to see that nothing grows.
    runs : int
        How often each case is run: all of them once, then all of them again.
    """

    name: str
    sizes: Sequence[int]
    keys: Sequence[int]
    keys_at: int
    seconds: float
    spark_batches: int
    flat_to: int
    steady: Sequence[str]
    steady_batches: int = 10_000
    runs: int = 3

    def timed(self, words: int) -> int:
        """Return how many batches of a streaming DataFrame are timed."""
        return max(2, min(self.spark_batches, 4 * self.spark_batches * 100_000 // words))

    def cases(self) -> Iterator[Case]:
        """The cases of this run."""
        for words in self.sizes:
            yield from self._of_size(words)
        for keys in self.keys:
            for contender in KEYS_CONTENDERS:
                yield Case(contender, "SQLite", self.keys_at, keys)

    def warm_ups(self) -> Iterator[Case]:
        """Cases that are run beforehand, as a JVM compiles what it runs often."""
        for contender in (*SPARK_CONTENDERS, *_OF_SPARK):
            yield Case(contender, "SQLite", 10_000)

    def _of_size(self, words: int) -> Iterator[Case]:
        for store in STORES:
            for contender in (*OURS, *OTHERS):
                if store != "memory" or contender not in _OF_SPARK:
                    yield Case(contender, store, words)


SHORT = Effort(
    "short",
    sizes=(100, 10_000, 100_000, 1_000_000, 4_000_000),
    keys=(10_000, 1_000_000),
    keys_at=100_000,
    seconds=0.5,
    spark_batches=5,
    flat_to=100_000_000,
    steady=(LOCAL,),
)
LONG = Effort(
    "long",
    sizes=(100, 1_000, 10_000, 100_000, 1_000_000, 4_000_000),
    keys=(10_000, 1_000_000, 10_000_000),
    keys_at=1_000_000,
    seconds=10.0,
    spark_batches=60,
    flat_to=100_000_000,
    steady=OURS[:3],
)
EFFORTS = {effort.name: effort for effort in (SHORT, LONG)}
