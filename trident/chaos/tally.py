"""What was counted while drivers were killed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from trident.chaos.life import PHASES
from trident.chaos.reader import Findings


@dataclass
class Tally:
    """What happened, and what was found."""

    rounds: int = 0
    episodes: int = 0
    """How many lives of drivers there were, and how many times the record was counted."""
    kills: Counter[str] = field(default_factory=Counter)
    """How many drivers were killed, by the last point that a batch had passed; with Spark also
    ``"JVM"`` and ``"Python worker"``. Those of take-overs are not among them."""
    overtaken: int = 0
    """How many drivers were stopped, and continued when another one had taken over."""
    killed_in_take_overs: Counter[str] = field(default_factory=Counter)
    """How many of these, and of those that took over, were killed at last, by point."""
    refused: int = 0
    """How many drivers ended because another one had gone on with their batches."""
    store: Counter[str] = field(default_factory=Counter)
    """What happened to the store: ``"restarted"``, ``"paused"``, ``"failed over"``."""
    reads: int = 0
    torn: int = 0
    lost: int = 0
    duplicated: int = 0
    differing: int = 0
    errors: list[str] = field(default_factory=list)
    """What drivers ended with that they should not end with."""
    examples: list[str] = field(default_factory=list)

    def add(self, found: Findings, what: str) -> None:
        """Add what a reader has found in an episode, which is called `what`."""
        self.episodes += 1
        self.reads += found.reads
        self.torn += found.torn
        self.lost += found.lost
        self.duplicated += found.duplicated
        self.differing += found.differing
        if found.example:
            self.examples.append(f"{what}: {found.example}")

    @property
    def miscounted(self) -> bool:
        """Whether the states came to anything but the truth."""
        return bool(self.lost or self.duplicated or self.differing)

    @property
    def by_phase(self) -> str:
        """The kills, in the order of the phases."""
        order = [*PHASES, *sorted(set(self.kills) - {*PHASES})]
        return ", ".join(f"{phase} {self.kills[phase]}" for phase in order if self.kills[phase])

    @property
    def of_store(self) -> str:
        """What happened to the store."""
        return ", ".join(f"{what} {times}" for what, times in sorted(self.store.items()))
