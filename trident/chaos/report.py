"""What a campaign has found: in lines for a person, and as a row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trident.chaos.contender import Contender
from trident.chaos.tally import Tally

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
        torn = self.tally.torn if self.contender.reads_whole else 0
        return bool(self.tally.miscounted or self.tally.errors or torn)

    def lines(self) -> list[str]:
        """Say it to a person."""
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
            f"  {tally.lost} lost, {tally.duplicated} duplicated, "
            f"{tally.torn} torn of {tally.reads} reads{promised}"
        )
        if tally.differing:
            found.append(f"  {tally.differing} other values differ")
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
        f"{tally.lost}",
        f"{tally.duplicated}",
        f"{tally.torn} of {tally.reads:,}",
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
        f"{contender.name}: {tally.lost} and {tally.duplicated} "
        f"({tally.kills.total()}, {tally.overtaken})"
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
