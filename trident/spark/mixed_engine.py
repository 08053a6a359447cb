"""Each batch on the engine that takes less for its size, by what batches took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from math import inf

from trident.batch.computed import Computed, Computing, Postponed
from trident.batch.outcome import Outcome
from trident.local.group_engine import LocalGroupEngine
from trident.sources.emission import Emission, Emitted
from trident.sources.source import Tuples
from trident.spark.group_engine import SparkGroupEngine
from trident.states.control import ControlRecord

_TRIED = 0.03
"""The share of the time that tries of the slower engine may cost."""
_KEPT = 3
"""Batches of a size that are remembered: the least counts, so two that waited change nothing."""
_BELIEVED = 2
"""Batches that are needed before a size is no longer guessed."""
_FIXED = {"local": 0.02, "spark": 0.15}
"""Seconds of a batch that its tuples have no part in, at most."""


class Costs:
    """What batches of a size took on each engine, and which one the next of them runs on.

    A size is a range: the most tuples are four times the least. What an engine takes for a size
    that it has hardly run is guessed, and rather too low, so it is tried. This process is tried
    first, as it needs no processes to start. Which has proved slower is tried again when the faster
    one has earned that: `_TRIED` of the time, and less the slower the other is; or at once where
    the load has become so much lighter that what was known is of another one.

    Examples
    --------
    >>> costs = Costs(cores=4)
    >>> for _ in range(3):
    ...     costs.took("local", 10_000, 2.0)  # 200 us a tuple
    >>> costs.choose(10_000), costs.choose(100)
    ('spark', 'local')
    >>> for _ in range(3):
    ...     costs.took("spark", 10_000, 3.0)
    >>> costs.choose(10_000)
    'local'
    """

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._cold = {"local", "spark"}
        self._took: dict[str, dict[int, _Batches]] = {"local": {}, "spark": {}}
        self._earned: dict[int, float] = defaultdict(float)
        self._peak: dict[int, float] = defaultdict(float)

    def choose(self, tuples: int) -> str:
        """Return the engine that is to run a batch of this many tuples."""
        size = _size(tuples)
        local, spark = self._expected("local", tuples), self._expected("spark", tuples)
        least, most = sorted((local, spark))
        faster, slower = ("local", "spark") if local <= spark else ("spark", "local")
        if least < self._peak[size] / 3 and self._earned[size] >= 0:
            self._took[slower].pop(size, None)
            self._peak[size] = 0.0
            self._earned[size] -= _BELIEVED * (most - least)  # the next time this has to be earned
            return self.choose(tuples)
        self._peak[size] = max(self._peak[size], least)
        self._earned[size] += _TRIED * least * least / most
        if self._earned[size] <= most - least:
            return faster
        self._earned[size], self._peak[size] = 0.0, least
        return slower

    def took(self, engine: str, tuples: int, seconds: float) -> None:
        """Learn from a batch that was computed and written."""
        if engine in self._cold:  # the first one imports, compiles, and starts what it needs
            self._cold.remove(engine)
            return
        took, size, fixed = self._took[engine], _size(tuples), min(_FIXED[engine], seconds)
        batch = fixed, (seconds - fixed) / max(tuples, 1)
        took[size] = (*took.get(size, ()), batch)[-_KEPT:]

    def _expected(self, engine: str, tuples: int) -> float:
        """Return the seconds that a batch of this many tuples is expected to take on an engine."""
        known = self._took[engine].get(_size(tuples), ())
        if len(known) >= _BELIEVED:
            return _least(known, tuples)
        return min(self._guess(engine, tuples), _least(known, tuples))

    def _guess(self, engine: str, tuples: int) -> float:
        """The same from the nearest size, and from the other engine: cores work side by side."""
        size, took = _size(tuples), self._took[engine]
        sizes = [each for each in list(took) if len(took[each]) >= _BELIEVED]
        nearest = min(sizes, key=lambda each: abs(each - size), default=None)
        guess = 0.0
        if nearest is not None:
            # Spark's jobs take long for few tuples; how little longer for more isn't known.
            most = tuples if engine == "local" else min(tuples, 2 << 2 * nearest)
            guess = _least(took[nearest], most)
        if engine == "spark":
            return max(guess, _FIXED["spark"] + self._expected("local", tuples) / self._cores)
        if len(known := self._took["spark"].get(size, ())) < _BELIEVED:
            return guess
        side_by_side = max(0.0, _least(known, tuples) - _FIXED["spark"])
        return min(guess, _FIXED["local"] + side_by_side * self._cores)


_Batches = tuple[tuple[float, float], ...]
"""What they took, in seconds: without their tuples, and for each of them."""


def _size(tuples: int) -> int:
    return tuples.bit_length() // 2


def _least(batches: _Batches, tuples: int) -> float:
    return min([fixed + each * tuples for fixed, each in batches], default=inf)


class MixedGroupEngine:
    """Runs each batch of a group of spouts on the engine that its size speaks for.

    Both work on the same states, so it is of no consequence for the result which one it was. What
    one has computed it writes as well. Lives on the driver; used by the run's own thread, but for
    :meth:`write`. `cores` is how many tasks Spark runs at the same time.
    """

    def __init__(self, local: LocalGroupEngine, spark: SparkGroupEngine, cores: int) -> None:
        self.acts_on_nothing = local.acts_on_nothing
        self._local = local
        self._spark = spark
        self._costs = Costs(cores)

    def read(self, emission: Emission) -> tuple[Tuples, list[Emitted]]:
        """Emit partitions where they are always emitted with a session: on executors."""
        return self._spark.read(emission)

    def compute(
        self, record: ControlRecord, emitted: Mapping[str, Tuples]
    ) -> Computed | Computing | Postponed:
        """Run all steps of a batch but its updates; see `GroupEngine.compute`."""
        tuples = sum(each.length for each in emitted.values())
        engine = self._local if self._costs.choose(tuples) == "local" else self._spark
        return engine.compute(record, emitted)

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Do what is left of a batch where it was computed; see `GroupEngine.write`."""
        engine = self._local if computed.engine == "local" else self._spark
        outcome = engine.write(record, computed)
        self._costs.took(computed.engine, outcome.tuples, sum(outcome.seconds.values()))
        return outcome

    def drop(self, emitted: Mapping[str, Tuples]) -> None:
        """Let go of tuples that are not computed."""
        self._spark.drop(emitted)

    def close(self) -> None:
        """Close both engines, and the states."""
        with ExitStack() as closing:
            closing.callback(self._spark.close)
            closing.callback(self._local.close)
