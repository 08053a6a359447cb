"""A campaign: episodes, in whose rounds drivers are killed until the record is counted."""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import ClassVar

from trident.chaos.contender import Contender, EpisodePlace
from trident.chaos.process import STARTING, UNHARMED, DriverEnd, Fate, Life, Process
from trident.chaos.reader import ReaderProcess
from trident.chaos.report import Tally
from trident.chaos.servers import Trouble
from trident.chaos.truth import Truth
from trident.states.errors import TridentError

_PATIENCE = 120.0
_MAX_PASSES = 8
_MAX_ERRORS = 5
"""An episode is given up after this many errors."""
_MAX_GIVEN_UP = 5

_SECONDS_A_LINE = 10.0
_ERRORS_THAT_END = 20


@dataclass(eq=False, repr=False)
class NotPreparedError(TridentError):
    """An episode can't begin."""

    episode: str
    problem: str

    _template = "{episode} could not be prepared: {problem}"


@dataclass
class Pace:
    """How long drivers live, learnt from those that were killed at a point."""

    life: float = 0.1

    def learn(self, seconds: float) -> None:
        self.life = 0.9 * self.life + 0.1 * min(seconds, 5.0)


@dataclass
class Episode:
    """The record, counted once by drivers that follow each other.

    Each of the `troubles` returns its name. Drivers are killed at the `points`, in turn.
    `after_round` is called after each round.
    """

    contender: Contender
    place: EpisodePlace
    truth: Truth
    troubles: Sequence[Trouble]
    choose: random.Random
    pace: Pace
    points: Iterator[str]
    tally: Tally
    after_round: Callable[[], None]
    _lives: int = field(default=0, init=False)
    _given_up: int = field(default=0, init=False)

    def run(self) -> None:
        prepare = partial(self.contender.before, self.place)
        with closing(Process(prepare, self.place.folder / "before.log")) as preparing:
            preparing.wait(_PATIENCE)
            if preparing.outcome is not DriverEnd.FINISHED:
                raise NotPreparedError(self.place.name, preparing.problem)
        with closing(ReaderProcess(self.contender, self.place, self.truth)) as reader:
            before = len(self.tally.errors)
            while not self._run_round() and len(self.tally.errors) < before + _MAX_ERRORS:
                self.after_round()
            self.tally.add(reader.findings(), self.place.name)
        if self.place.notes.exists():
            self.tally.store.update(self.place.notes.read_text().splitlines())

    def _run_round(self) -> bool:
        """Run one driver, or two if one takes over; return whether one came to the end."""
        self.tally.rounds += 1
        taken_over = max(self._take_over_share, self.contender.taken_over)
        if self.choose.random() < taken_over:
            return self._run_take_over()
        if self.choose.random() < self._trouble_share and self.troubles:
            return self._run_trouble()
        fate = self._fate() if self.choose.random() < 0.5 else UNHARMED
        with closing(self._start_driver(fate)) as driver:
            may_fail = not driver.life.fate.point and self._kill(driver)
            return self._note_end(driver, may_fail=may_fail)

    def _kill(self, driver: Process) -> bool:
        """Kill a driver at any moment; return whether it may end with an error."""
        driver.wait(self._moment())
        driver.close()
        return False

    def _run_take_over(self) -> bool:
        """Stop a driver, let another one take over, and continue the first meanwhile."""
        with closing(self._start_driver(self._stop_fate())) as first:
            if not first.life.fate.point:
                self._stop(first)
            first.wait(_PATIENCE, or_stopped=True)
            if first.outcome is not None:
                return self._note_end(first)
            # Remove its lock, as if it were on a machine that is out of reach.
            with suppress(FileNotFoundError):
                (self.place.checkpoint / ".lock").unlink()
            self.tally.overtaken += 1
            with closing(self._start_driver(self._stop_fate())) as second:
                # It is continued at any moment, or while the second stands at a point
                self._wait_at_work(second)
                second.wait(self._moment(), or_stopped=True)
                self._resume(first)
                first.wait(self._moment())
                second.resume()
                second.wait(self._moment())
                for driver in self.choose.sample([first, second], 2):
                    driver.wait(self._moment())
                    driver.close()
                killed = self.tally.killed_in_take_overs
                ended = [self._note_end(each, killed, alone=False) for each in (first, second)]
                return any(ended)

    def _run_trouble(self) -> bool:
        """Let the store have trouble while a driver is at work."""
        with closing(self._start_driver(UNHARMED)) as driver:
            self._wait_at_work(driver)
            driver.wait(self._moment())
            what = self.choose.choice(self.troubles)()
            self.tally.store[what] += 1
            driver.wait(self._moment() + self.pace.life)
            driver.close()
            return self._note_end(driver, alone=False, may_fail=what in self._fatal_troubles)

    def _start_driver(self, fate: Fate) -> Process:
        """Start the next driver; closing it kills it."""
        self._lives += 1
        mark = self.place.folder / f"driver-{self._lives}.mark"
        life = Life(self._lives, fate, mark)
        return self._process_class(partial(self._drive, life), mark.with_suffix(".log"), life)

    def _drive(self, life: Life) -> None:
        """Be a driver, in a process of its own."""
        self.contender.drive(self.place, life)

    def _note_end(
        self,
        driver: Process,
        kills: Counter[str] | None = None,
        *,
        alone: bool = True,
        may_fail: bool = False,
    ) -> bool:
        """Note how a driver has ended, a kill in `kills`; return whether the record is counted."""
        if not driver.wait(_PATIENCE):
            driver.close()
            self._add_error(f"a driver hung {driver.life.phase}")
        # A start waits for no store, and servers that are started here have little time to answer.
        if driver.outcome is DriverEnd.GAVE_UP:
            self._given_up += 1
        elif driver.life.phase != STARTING:
            self._given_up = 0
        if self._given_up == _MAX_GIVEN_UP:
            self._add_error(f"{_MAX_GIVEN_UP} drivers in a row found no store: {driver.problem}")
            self._given_up = 0
        self.tally.refused += driver.outcome is DriverEnd.OVERTAKEN
        match driver.outcome:
            case DriverEnd.KILLED:
                (self.tally.kills if kills is None else kills)[driver.life.phase] += 1
                if driver.life.fate.point:
                    self.pace.learn(time.monotonic() - driver.born)
            case DriverEnd.FAILED if not may_fail:
                self._add_error(f"a driver failed: {driver.problem}")
            case DriverEnd.OVERTAKEN if alone:
                self._add_error(f"a driver was refused, and there was no other: {driver.problem}")
        return driver.outcome is DriverEnd.FINISHED and self.contender.counts_all(driver.life)

    _process_class: ClassVar[type[Process]] = Process
    """Of a driver."""

    _take_over_share: ClassVar[float] = 0.15
    """The share of rounds in which a driver is taken over, at least."""

    _trouble_share: ClassVar[float] = 0.06
    """The share of rounds in which the store has trouble."""

    _stop_anywhere_share: ClassVar[float] = 0.3
    """The share of drivers that are stopped at any moment, not at a point."""

    _fatal_troubles: ClassVar[Collection[str]] = ()
    """The troubles that may end a driver with any error."""

    def _wait_at_work(self, driver: Process) -> None:
        """Wait until a driver is at work, where that takes longer than a moment."""

    def _stop(self, driver: Process) -> None:
        """Stop a driver at any moment."""
        self._wait_at_work(driver)
        driver.wait(self._moment())
        driver.stop()

    def _resume(self, driver: Process) -> None:
        driver.resume()

    def _add_error(self, what: str) -> None:
        self.tally.errors.append(f"{self.place.name}, round {self.tally.rounds}: {what}")

    def _moment(self) -> float:
        return self.choose.uniform(0, self.pace.life)

    def _fate(self) -> Fate:
        return Fate(next(self.points), self.choose.randrange(_MAX_PASSES))

    def _stop_fate(self) -> Fate:
        if self.choose.random() < self._stop_anywhere_share:
            return UNHARMED
        fate = self._fate()
        return Fate(fate.point, fate.passes, signal.SIGSTOP)


@dataclass
class Campaign:
    """Has contenders count, again and again.

    What happens follows from `seed`. `say` takes the lines of progress. `logs` is the URL of the
    store that keeps the topologies' logs; empty if folders do.
    """

    troubles: Sequence[Trouble]
    seed: str
    folder: Path
    say: Callable[[str], None]
    logs: str = ""
    _pace: Pace = field(default_factory=Pace, init=False)
    _episodes: int = field(default=0, init=False)
    _said: float = field(default=0.0, init=False)

    def run(
        self,
        contender: Contender,
        truth: Truth,
        ends: Callable[[Tally], bool],
        episode: type[Episode],
    ) -> Tally:
        """Count the record again and again, until `ends` says that it was enough.

        `episode` is what happens to drivers.
        """
        tally = Tally()
        points = cycle(random.Random(self.seed).sample(contender.points, len(contender.points)))
        say_progress = partial(self._say_progress, contender.name, tally, time.monotonic())
        while not ends(tally) and len(tally.errors) < _ERRORS_THAT_END:
            self._episodes += 1
            name = f"chaos-{self.seed}-{self._episodes}"
            # On a given store another campaign of this seed may have been
            unique = f"{name}-{int(time.time()):x}"
            folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
            errors = len(tally.errors)
            episode(
                contender,
                EpisodePlace(folder, unique, name, self.logs),
                truth,
                self.troubles,
                random.Random(name),
                self._pace,
                points,
                tally,
                say_progress,
            ).run()
            if len(tally.errors) == errors:
                shutil.rmtree(folder)
        return tally

    def _say_progress(self, name: str, tally: Tally, began: float) -> None:
        """Say how far a contender is, at most every `_SECONDS_A_LINE` seconds."""
        now, found = time.monotonic(), tally.found
        if now - max(began, self._said) < _SECONDS_A_LINE:
            return
        self._said = now
        self.say(
            f"{now - began:5.0f} s  {name}: {tally.rounds} rounds, {tally.kills.total()} kills, "
            f"{found.lost} lost, {found.duplicated} duplicated, "
            f"{found.torn} torn of {found.reads} reads"
        )
