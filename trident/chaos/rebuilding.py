"""A topology whose states are built anew, and swapped in, by drivers that are killed."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass

from trident.api.start import start
from trident.batch.start_options import StartOptions
from trident.chaos.contender import Declared, EpisodePlace
from trident.chaos.process import UNHARMED, Life
from trident.plan.substitution import rebuilt
from trident.states.maps.moving import swap_states

_LONGEST_SWAP = 0.01
"""Seconds: two thirds of the drivers are killed within them, once they begin to swap."""


@dataclass(frozen=True)
class Rebuilt(Declared):
    """The record is counted beforehand. Readers must find all of it at any time: in the old states,
    or in those that drivers build anew."""

    def before(self, place: EpisodePlace) -> None:
        super().before(place)
        topology = self.declared(place, Life(0, UNHARMED, place.folder / "before.mark"))
        with topology.start(checkpoint=place.folder / "old", trigger="available") as run:
            run.awaitTermination()

    def drive(self, place: EpisodePlace, life: Life) -> None:
        declared = self.declared(place, life).plan()
        names = [node.state.name for node in declared.updates]
        prefixes = {name: f"{place.name}-{name}-2" for name in names}
        plan, groups = rebuilt(declared, prefixes)
        options = StartOptions(**place.checkpoints, trigger="available")
        with start(plan, None, options) as run:
            run.awaitTermination()
        if life.number % 3:
            moment = _LONGEST_SWAP * (life.number * 0.618 % 1)
            timer = threading.Timer(moment, os.kill, (os.getpid(), signal.SIGKILL))
            timer.daemon = True
            timer.start()
        for swaps in groups:
            swap_states(swaps)
