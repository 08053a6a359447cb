"""Episode after episode, until the time is over; then the same with what should fail."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from trident.chaos.contender import Contender, EpisodePlace
from trident.chaos.rounds import Episode, Pace
from trident.chaos.tally import Tally
from trident.chaos.trouble import Trouble
from trident.chaos.truth import Truth

_SECONDS_A_LINE = 10.0
_MOST_ERRORS = 20


@dataclass
class Campaign:
    """Has contenders count, again and again.

    What happens follows from `seed`. `say` takes the lines of progress; `episode` is how drivers
    are treated; in the store of the URL `logs` the topologies' logs are, where it is given.
    """

    troubles: Sequence[Trouble]
    seed: str
    folder: Path
    say: Callable[[str], None]
    episode: type[Episode] = Episode
    logs: str = ""
    _pace: Pace = field(default_factory=Pace, init=False)
    _episodes: int = field(default=0, init=False)

    def run(self, contender: Contender, truth: Truth, ends: Callable[[Tally], bool]) -> Tally:
        """Count the record again and again; `ends` tells after each time whether it was enough."""
        tally = Tally()
        points = cycle(random.Random(self.seed).sample(contender.points, len(contender.points)))
        line = _Line(contender.name, tally, self.say)
        while not ends(tally) and len(tally.errors) < _MOST_ERRORS:
            self._episodes += 1
            name = f"chaos-{self.seed}-{self._episodes}"
            # On a given store another campaign of this seed may have been
            unique = f"{name}-{int(time.time()):x}"
            folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
            errors = len(tally.errors)
            self.episode(
                contender,
                EpisodePlace(folder, unique, name, self.logs),
                truth,
                self.troubles,
                random.Random(name),
                self._pace,
                points,
                tally,
                line.tell,
            ).run()
            if len(tally.errors) == errors:
                shutil.rmtree(folder)
        return tally


class _Line:
    """Says from time to time how far it is."""

    def __init__(self, name: str, tally: Tally, say: Callable[[str], None]) -> None:
        self._name = name
        self._tally = tally
        self._say = say
        self._began = self._said = time.monotonic()

    def tell(self) -> None:
        now = time.monotonic()
        if now - self._said >= _SECONDS_A_LINE:
            self._said = now
            tally = self._tally
            self._say(
                f"{now - self._began:5.0f} s  {self._name}: {tally.rounds} rounds, "
                f"{tally.kills.total()} kills, {tally.lost} lost, {tally.duplicated} duplicated, "
                f"{tally.torn} torn of {tally.reads} reads"
            )
