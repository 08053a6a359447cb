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


@dataclass(frozen=True)
class Tested:
    """A contender, and what came of it."""

    contender: Contender
    tally: Tally
    words: int

    @property
    def wrong(self) -> bool:
        """Whether a promise was broken."""
        torn = self.tally.found.torn if self.contender.reads_whole else 0
        return bool(self.tally.found.miscounted or self.tally.errors or torn)

    @property
    def facts(self) -> dict[str, str]:
        """The findings, by their names."""
        tally, found = self.tally, self.tally.found
        killed = tally.killed_in_take_overs.total()
        taken_over = f"{tally.overtaken:,}, {tally.refused:,} refused, {killed:,} killed"
        return {
            "kills": f"{tally.kills.total():,}",
            "continued after a take-over": taken_over,
            "store and source": tally.of_store,
            "words counted": f"{tally.episodes * self.words:,}",
            "lost": f"{found.lost}",
            "duplicated": f"{found.duplicated}",
            "torn reads": f"{found.torn} of {found.reads:,}",
            "drivers that failed": f"{len(tally.errors)}",
        }

    def lines(self) -> list[str]:
        facts = {**self.facts, "kills by phase": self.tally.by_phase}
        if self.tally.found.differing:
            facts["other values that differ"] = f"{self.tally.found.differing}"
        if not self.contender.reads_whole:
            facts["torn reads"] += " (whole reads are not promised)"
        lines = [f"{self.contender.name}: {self.tally.rounds} rounds"]
        lines += [f"  {name}: {fact}" for name, fact in facts.items() if fact]
        return lines + [f"  {what}" for what in (self.tally.errors + self.tally.examples)[:_SHOWN]]


def append_row(
    table: Path,
    state: str,
    source: str,
    seed: str,
    tested: Tested,
    compared: Mapping[Contender, Tested | None],
) -> None:
    """Append the findings to a table in Markdown; begin the table if it does not exist.

    `compared` has what can't be exact, with None if it was not compared yet.
    """
    comparison = "; ".join(_compared(each, found) for each, found in compared.items())
    row = {
        "state": f"`{state}`",
        "source": source,
        **tested.facts,
        "for comparison: lost and duplicated after so many kills and take-overs": comparison,
        "seed": seed,
    }
    with table.open("a", encoding="utf-8") as file:
        if file.tell() == 0:
            file.write(f"{_row([*row])}{_row(['---'] * len(row))}")
        file.write(_row([*row.values()]))


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
    """How many drivers ended because another one had continued their batches."""
    store: Counter[str] = field(default_factory=Counter)
    """What happened to the store: ``"restarted"``, ``"paused"``, ``"failed over"``."""
    found: Findings = field(default_factory=Findings)
    errors: list[str] = field(default_factory=list)
    """The errors with which drivers should not have ended."""
    examples: list[str] = field(default_factory=list)

    def add(self, found: Findings, what: str) -> None:
        """Add the findings of a reader in the episode called `what`."""
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
