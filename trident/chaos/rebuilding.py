"""A topology whose states are built anew beside it, and swapped in, by drivers that are killed."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from trident.api.start import start
from trident.api.topology import TridentTopology
from trident.batch.start_options import StartOptions
from trident.batch.watchpoints import reached
from trident.chaos.contender import (
    EpisodePlace,
    MapContender,
    OwnSpout,
    TopologyFunction,
    WordSource,
)
from trident.chaos.process import SWAPPING, DriverEnd, Fate, Life, Process
from trident.chaos.rounds import Episode
from trident.chaos.store import MapStore
from trident.chaos.ways import Way
from trident.plan.substitution import plan_rebuild
from trident.states.errors import UsageError
from trident.states.maps.moving import swap_states
from trident.states.values import Token

_HISTORY = 0.9
"""The share of the record that the old run counts, and that is built anew."""
_BEFORE = 10
"""How many words it has counted beforehand."""
_SPARED = 0.15
"""The share of drivers that are not killed within the swap, of those that reach it."""
_WRITES = ("putControl", "moveControls", "flush")
_MOST_WRITES = 16
"""Begins and ends of them: two states have up to fourteen, and those of PostgreSQL two."""
_LONGEST_SWAP = 0.01
_OLD_KILLED = 0.2
_PATIENCE = 120.0


@dataclass(frozen=True)
class RebuildingContender(MapContender):
    """Drivers build the states anew, swap them in, and count on, while the old run counts.

    The old one takes a word a batch, so that it is behind. So readers never see fewer words than
    before, of the old states or of the new ones.
    """

    source: OwnSpout

    def before(self, place: EpisodePlace) -> None:
        super().before(place)
        self.count_beside(place, _BEFORE)

    def count_beside(self, place: EpisodePlace, end: int | None = None) -> None:
        """Be the old run, until one of its states is replaced."""
        topology = self._over(replace(self.source, most=1, end=end or self._history), place, 0)
        with topology.start(checkpoint=place.folder / "old", trigger="available") as run:
            run.awaitTermination()

    def drive(self, place: EpisodePlace, life: Life) -> None:
        source = replace(self.source, end=self._history)
        declared = self._over(source, place, life.number).plan()
        names = [node.state.name for node in declared.updates]
        plan, groups = plan_rebuild(declared, {name: f"{place.name}-{name}-2" for name in names})
        with start(plan, None, StartOptions(**place.checkpoints, trigger="available")) as run:
            run.awaitTermination()
        reached(SWAPPING, Token(0, 0))
        choose = random.Random(f"{place.seed} swap {life.number}")
        if choose.random() >= _SPARED:
            _die_within_swap(choose)
        for swaps in groups:
            swap_states(swaps)
        sys.setprofile(None)
        super().drive(place, life)

    @property
    def _history(self) -> int:
        return int(self.source.record.length * _HISTORY)

    def _over(self, source: OwnSpout, place: EpisodePlace, life: int) -> TridentTopology:
        return self.declare(place, source.make(place, life), life)


def _die_within_swap(choose: random.Random) -> None:
    """Have this process killed before or after one of the writes that follow, or soon."""
    left = int(_MOST_WRITES ** choose.random())
    kill = partial(os.kill, os.getpid(), signal.SIGKILL)

    def watch(frame: Any, event: str, _: object) -> None:
        nonlocal left
        if event in ("call", "return") and frame.f_code.co_name in _WRITES:
            left -= 1
            if not left:
                kill()

    if choose.random() < 0.7:
        sys.setprofile(watch)
    else:
        timer = threading.Timer(choose.uniform(0, _LONGEST_SWAP), kill)
        timer.daemon = True
        timer.start()


class RebuildEpisode(Episode):
    """An episode beside whose drivers an old run counts, which is killed and started again too."""

    _old: Process | None = None

    def run(self) -> None:
        errors = len(self.tally.errors)
        try:
            super().run()
            if len(self.tally.errors) == errors:
                self._end_old()
        finally:
            if self._old is not None:
                self._old.close()

    def _start_driver(self, fate: Fate) -> Process:
        if self._old is not None and self.choose.random() < _OLD_KILLED:
            self._old.close()
        if self._old is None or self._old.wait(0):
            self._start_old()
        return super()._start_driver(fate)

    def _start_old(self) -> Process:
        """Note how the old run has ended, and start it again."""
        assert isinstance(self.contender, RebuildingContender)
        match self._old:
            case Process(outcome=DriverEnd.KILLED):
                self.tally.store["old run killed"] += 1
            case Process(outcome=DriverEnd.OVERTAKEN):
                self.tally.store["old run refused"] += 1
            case Process(outcome=DriverEnd.FAILED, problem=problem):
                self._add_error(f"the old run failed: {problem}")
        work: Callable[[], None] = partial(self.contender.count_beside, self.place)
        self._old = Process(work, self.place.folder / "old.log")
        return self._old

    def _end_old(self) -> None:
        """The old run ends with the swap, and so it does when it is started once more."""
        if self._old is not None:
            self._old.wait(_PATIENCE)
        last = self._start_old()
        if not last.wait(_PATIENCE) or last.outcome is DriverEnd.FINISHED:
            self._add_error("the old run goes on after the swap")


class RebuiltStore(MapStore):
    """Map states that are built anew, and swapped in."""

    def contender(
        self, name: str, make: TopologyFunction, way: Way, source: WordSource
    ) -> RebuildingContender:
        if not isinstance(source, OwnSpout) or way.on_spark:
            advice = "Leave --spark out, and take --source opaque or transactional."
            what = "--case rebuild: it runs without Spark, and takes a spout"
            raise UsageError(what, "", (), advice)
        return RebuildingContender(name, source, way.run, self.factory(), make)

    def episode(self, way: Way) -> type[Episode]:
        return RebuildEpisode
