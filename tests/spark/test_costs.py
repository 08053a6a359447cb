"""Which engine a batch runs on: simulated engines, their noise, and changes of the load."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest

from trident.batch.computed import Computed
from trident.batch.outcome import Outcome
from trident.spark.mixed_engine import Costs, MixedGroupEngine

Load = Callable[[str, int], float]
"""What a batch of so many tuples takes on an engine that is warm, in seconds."""
CORES = 4
HOT = 10
"""Batches after which a size, or a changed load, has to be known."""


class Ran(NamedTuple):
    """A batch: where it ran, and what it takes there and on the better engine, without noise."""

    engine: str
    seconds: float
    best: float


class Simulation:
    """Engines that are cold at first, are noisy, and wait for something at one batch of a hundred.

    A JVM starts for 5 seconds, and takes longer for its part of a batch until that is compiled.
    """

    def __init__(self, seed: int = 1, cores: int = CORES) -> None:
        self.costs = Costs(cores)
        self._random = random.Random(seed)
        self._ran = {"local": 0, "spark": 0}

    def run(self, load: Load, sizes: Iterable[int]) -> list[Ran]:
        return [self._batch(load, tuples) for tuples in sizes]

    def _batch(self, load: Load, tuples: int) -> Ran:
        engine = self.costs.choose(tuples)
        seconds = load(engine, tuples)
        before, self._ran[engine] = self._ran[engine], self._ran[engine] + 1
        cold = 0.3 if engine == "local" else 5.0
        warming = 0.0 if engine == "local" else overhead(tuples) * math.exp(-before / 4)
        noise = self._random.lognormvariate(0, 0.15) * self._random.choices((1, 8), (99, 1))[0]
        self.costs.took(engine, tuples, cold * (not before) + (warming + seconds) * noise)
        return Ran(engine, seconds, min(load(other, tuples) for other in ("local", "spark")))


def regret(batches: list[Ran]) -> float:
    """What they took more than on the better engine, as a share of that."""
    return sum(each.seconds for each in batches) / sum(each.best for each in batches) - 1


def overhead(tuples: int) -> float:
    """What Spark takes for a batch besides what it does with its tuples."""
    return 0.12 + 6e-7 * tuples


def work(each: float = 0.3e-6, cores: int = CORES) -> Load:
    """A function that takes so long for a tuple, which executors share."""

    def load(engine: str, tuples: int) -> float:
        return (
            0.0015 + each * tuples
            if engine == "local"
            else overhead(tuples) + each * tuples / cores
        )

    return load


WORDS = work()  # it takes less here than rows take to the JVM and back
SLOW = work(200e-6)


@pytest.mark.parametrize("tuples", [100, 10_000, 100_000, 1_000_000, 4_000_000])
@pytest.mark.parametrize("seed", range(5))
def test_a_word_count_runs_here_but_for_tries_of_three_percent(tuples: int, seed: int) -> None:
    batches = Simulation(seed, cores=2).run(work(cores=2), repeat(tuples, 400))
    assert regret(batches[HOT:]) <= 0.03


@pytest.mark.parametrize("tuples", [5_000, 100_000])
@pytest.mark.parametrize("seed", range(5))
def test_a_slow_function_runs_on_executors_but_for_tries_of_three_percent(
    tuples: int, seed: int
) -> None:
    batches = Simulation(seed).run(SLOW, repeat(tuples, 400))
    assert regret(batches[HOT:]) <= 0.03


@pytest.mark.parametrize("load", [WORDS, work(4e-6), work(20e-6), SLOW])
@pytest.mark.parametrize("seed", range(5))
def test_batches_of_any_size_run_where_it_is_faster(load: Load, seed: int) -> None:
    draw = random.Random(seed)
    sizes = [int(10 ** draw.uniform(2, 6.6)) for _ in range(1000)]
    assert regret(Simulation(seed).run(load, sizes)[10 * HOT :]) <= 0.1


@pytest.mark.parametrize("load", [WORDS, SLOW])
@pytest.mark.parametrize("seed", range(5))
def test_a_flood_now_and_then_runs_where_it_is_faster(load: Load, seed: int) -> None:
    sizes = [1_000_000 if number % 200 == 100 else 100 for number in range(6_000)]
    batches = Simulation(seed).run(load, sizes)
    floods = [each for tuples, each in zip(sizes, batches, strict=True) if tuples > 100]
    assert regret(floods[HOT:]) <= 0.1


@pytest.mark.parametrize("tuples", [10_000, 100_000])
@pytest.mark.parametrize("seed", range(5))
def test_a_changed_load_is_known_soon(tuples: int, seed: int) -> None:
    simulation = Simulation(seed)
    for load in (WORDS, SLOW, WORDS, SLOW):
        assert regret(simulation.run(load, repeat(tuples, 300))[HOT:]) <= 0.1


@pytest.mark.parametrize("tuples", [160_000, 1_000_000])
@pytest.mark.parametrize("before", [3_000, 10_000])
@pytest.mark.parametrize("each", [20e-6, 40e-6])
def test_batches_that_have_grown_run_on_spark_where_small_ones_took_too_long(
    tuples: int, before: int, each: float
) -> None:
    def load(engine: str, tuples: int) -> float:
        return each * tuples if engine == "local" else 0.5 + each / 2 * tuples

    simulation = Simulation(cores=2)
    simulation.run(load, repeat(before, 300))
    assert regret(simulation.run(load, repeat(tuples, 100))[HOT:]) <= 0.1


@pytest.mark.parametrize("every", [4, 10, 30, 100])
def test_a_load_that_swings_costs_tries_of_three_percent(every: int) -> None:
    costs, batches = Costs(2), []
    for number in range(2_000):
        took = {"local": 4.0 if number // every % 2 else 1.0, "spark": 10.0}
        engine = costs.choose(100_000)
        costs.took(engine, 100_000, took[engine])
        batches.append(Ran(engine, took[engine], took["local"]))
    assert regret(batches) <= 0.03


@pytest.mark.parametrize("seed", range(5))
def test_an_engine_that_has_got_faster_is_found_by_a_try(seed: int) -> None:
    simulation, tuples = Simulation(seed), 100_000
    simulation.run(work(20e-6, cores=1), repeat(tuples, 200))
    simulation.run(work(20e-6, cores=8), repeat(tuples, 300))
    assert regret(simulation.run(work(20e-6, cores=8), repeat(tuples, 300))) <= 0.05


def test_what_is_many_times_slower_is_tried_and_hardly_costs_anything() -> None:
    batches = Simulation().run(WORDS, repeat(50_000, 20_000))[HOT:]
    assert sum(each.engine == "spark" for each in batches) >= 2
    assert regret(batches) <= 0.005


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_two_batches_that_waited_change_nothing(engine: str) -> None:
    costs = Costs(CORES)
    known = {"local": 1.0, "spark": 0.5} if engine == "spark" else {"local": 0.5, "spark": 1.0}
    for each, seconds in known.items():
        for _ in range(4):
            costs.took(each, 100_000, seconds)
    for _ in range(2):
        costs.took(engine, 100_000, 60.0)
        assert costs.choose(100_000) == engine
    costs.took(engine, 100_000, 60.0)
    assert costs.choose(100_000) != engine


def test_the_first_batches_run_here() -> None:
    costs = Costs(CORES)
    for _ in range(3):
        assert costs.choose(10_000_000) == "local"
        costs.took("local", 10_000_000, 60.0)
    assert costs.choose(10_000_000) == "spark"


def test_a_try_that_fails_is_not_repeated() -> None:
    costs = Costs(CORES)
    for engine, seconds in (("local", 0.1), ("spark", 0.11)):
        for _ in range(3):
            costs.took(engine, 10_000, seconds)
    while costs.choose(10_000) == "local":
        costs.took("local", 10_000, 0.1)
    assert costs.choose(10_000) == "local"


def test_a_batch_without_tuples_runs_here() -> None:
    costs = Costs(CORES)
    for _ in range(10):
        assert costs.choose(0) == "local"
        costs.took("local", 0, 0.001)


def test_what_a_batch_took_is_learned_from_its_computing_to_its_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learned = []
    monkeypatch.setattr(Costs, "took", lambda costs, *given: learned.append(given))
    computed = Computed((), Outcome(tuples=5, seconds={"compute": 1.0}, engine="local"))
    written = computed.outcome + Outcome(seconds={"write": 2.0})
    here: Any = Mock(acts_on_nothing=False, **{"write.return_value": written})
    MixedGroupEngine(here, Mock(), CORES).write(Mock(), computed)
    assert learned == [("local", 5, 3.0)]
