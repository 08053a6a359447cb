"""What a campaign has counted, in lines for a person, and as a row of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trident.chaos.contender import Contender
from trident.chaos.process import PHASES
from trident.chaos.truth import Findings

_SHOWN = 10
_COLUMNS = (
    "state",
    "source",
    "kills",
    "continued after a take-over",
    "store and source",
    "words counted",
    "lost",
    "duplicated",
    "torn reads",
    "drivers that failed",
    "for comparison: lost and duplicated after so many kills and take-overs",
    "seed",
)


@dataclass(frozen=True)
class Tested:
    """A contender, and what came of it."""

    contender: Contender
    tally: Tally
    words: int

    @property
    def wrong(self) -> bool:
        """Whether anything is that was promised not to be."""
        torn = self.tally.found.torn if self.contender.reads_whole else 0
        return bool(self.tally.found.miscounted or self.tally.errors or torn)

    def lines(self) -> list[str]:
        tally = self.tally
        kills = tally.kills.total()
        found = [
            f"{self.contender.name}: {tally.rounds} rounds, {kills} kills, "
            f"{tally.episodes} times {self.words} words"
        ]
        found.append(f"  kills by phase: {tally.by_phase or 'none'}")
        if tally.overtaken:
            found.append(
                f"  {tally.overtaken} drivers were stopped, and continued after a take-over; "
                f"{tally.refused} were refused when another one had gone on; "
                f"{tally.killed_in_take_overs.total()} of these rounds' drivers were killed"
            )
        if tally.store:
            found.append(f"  store and source: {tally.of_store}")
        promised = "" if self.contender.reads_whole else " (whole reads are not promised)"
        found.append(
            f"  {tally.found.lost} lost, {tally.found.duplicated} duplicated, "
            f"{tally.found.torn} torn of {tally.found.reads} reads{promised}"
        )
        if tally.found.differing:
            found.append(f"  {tally.found.differing} other values differ")
        return found + [f"  {what}" for what in (tally.errors + tally.examples)[:_SHOWN]]


def append_row(
    table: Path,
    state: str,
    source: str,
    seed: str,
    tested: Tested,
    compared: Mapping[Contender, Tested | None],
) -> None:
    """Append what was found to a table in Markdown; begin the table where there is none.

    What can't be exact is compared, None where it is not yet.
    """
    tally = tested.tally
    comparison = "; ".join(_compared(each, found) for each, found in compared.items())
    cells = (
        f"`{state}`",
        source,
        f"{tally.kills.total():,}",
        f"{tally.overtaken:,}, {tally.refused:,} refused, "
        f"{tally.killed_in_take_overs.total():,} killed",
        tally.of_store,
        f"{tally.episodes * tested.words:,}",
        f"{tally.found.lost}",
        f"{tally.found.duplicated}",
        f"{tally.found.torn} of {tally.found.reads:,}",
        f"{len(tally.errors)}",
        comparison,
        seed,
    )
    with table.open("a", encoding="utf-8") as file:
        if file.tell() == 0:
            file.write(f"{_row(_COLUMNS)}{_row(['---'] * len(_COLUMNS))}")
        file.write(_row(cells))


def _compared(contender: Contender, found: Tested | None) -> str:
    if found is None:
        return f"{contender.name}: not yet compared"
    tally = found.tally
    return (
        f"{contender.name}: {tally.found.lost} and {tally.found.duplicated} "
        f"({tally.kills.total()}, {tally.overtaken})"
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


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
    found: Findings = field(default_factory=Findings)
    errors: list[str] = field(default_factory=list)
    """What drivers ended with that they should not end with."""
    examples: list[str] = field(default_factory=list)

    def add(self, found: Findings, what: str) -> None:
        """Add what a reader has found in an episode, which is called `what`."""
        self.episodes += 1
        self.found += found
        if found.example:
            self.examples.append(f"{what}: {found.example}")

    @property
    def by_phase(self) -> str:
        """The kills, in the order of the phases."""
        order = [*PHASES, *sorted(set(self.kills) - {*PHASES})]
        return ", ".join(f"{phase} {self.kills[phase]}" for phase in order if self.kills[phase])

    @property
    def of_store(self) -> str:
        """What happened to the store."""
        return ", ".join(f"{what} {times}" for what, times in sorted(self.store.items()))
