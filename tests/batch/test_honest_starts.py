"""Runs that fail anywhere, of states that come, go and are renamed: none is taken for a copy's."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.batch.counting import STREAMS, CountingEngine, Words, counts, memory_state
from trident.batch.errors import BatchFailedError
from trident.batch.failures import FailurePolicy
from trident.batch.opening import LogTerms
from trident.batch.runner import BatchRunner
from trident.batch.states import BatchState
from trident.batch.watchpoints import POINTS, watching
from trident.log.log import MemoryLog
from trident.states.maps.factory import OpaqueMap
from trident.states.values import Token

BATCHES = ("", "x", "y", "x y", "z")


class Killed(BaseException):
    """What no run handles."""


class Life:
    """A log, and three states: in a topology or not, each under its latest name."""

    def __init__(self, random: Random) -> None:
        self.random, self.log = random, MemoryLog("log")
        self.states = [memory_state() for _ in range(3)]
        self.names = ["a", "b", "c"]
        self.present = {0, 1}
        self.expected = [Counter[str]() for _ in self.states]

    def change(self, step: int) -> None:
        """Rename a state, leave it out, or take it in."""
        one = self.random.randrange(3)
        if self.random.random() < 0.5:
            self.names[one] = f"{self.names[one][0]}{step}"
        elif self.present != {one}:
            self.present ^= {one}

    def start(self) -> tuple[BatchRunner, list[OpaqueMap]]:
        states = {self.names[one]: OpaqueMap(self.states[one].backing) for one in self.present}
        made = {name: BatchState(one) for name, one in states.items()}
        policy = FailurePolicy(retries=self.random.choice([0, 2]), backoff=0.0)
        runner = BatchRunner(self.log, made, group="words", policy=policy)
        runner.open(LogTerms(streams=STREAMS))
        return runner, list(states.values())

    def run(self, runner: BatchRunner, states: list[OpaqueMap]) -> bool:
        """Run a batch, which may fail at some point; return whether the run can go on."""
        point, times = self.random.choice(POINTS), self.random.choice([0, 0, 1, 9])
        failure = self.random.choice([Killed, ZeroDivisionError])
        due, left = runner.next_txid, [times]

        def fail(reached: str, token: Token) -> None:
            if (reached, token.txid) == (point, due) and left[0]:
                left[0] -= 1
                raise failure

        attempts = self.random.choices(BATCHES, k=3)
        words = Words(CountingEngine(*states), *attempts)
        going_on = True
        try:
            with watching(fail):
                runner.run(words)
        except (Killed, ZeroDivisionError, BatchFailedError):
            going_on = False
        newest = self.log.newest()
        assert newest is not None
        if newest.committed >= due:
            for one in self.present:
                self.expected[one].update(word for (word,) in words.words.tuples(["word"]))
        return going_on


def test_honest_starts_are_never_refused_and_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident.batch.runner.MOST_RETRIED", 2)
    for seed in range(300):
        life = Life(Random(seed))
        for step in range(life.random.randint(2, 10)):
            started = life.start()
            while life.run(*started) and life.random.random() < 0.7:
                pass
            if life.random.random() < 0.6:
                life.change(step)
        life.start()
        for one in life.present:
            found = dict(zip("xyz", counts(life.states[one], "x y z"), strict=True))
            expected = {word: life.expected[one].get(word) for word in "xyz"}
            assert found == expected, (seed, life.names[one])
