"""What `wordcount.py` prints."""

from __future__ import annotations

import heapq
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wordcount_text import Text

from trident.plan.guarantee import guarantee
from trident.run import Run
from trident.topology import TridentTopology


@dataclass(frozen=True)
class Followed:
    """What a run did while it was followed."""

    batches: int
    seconds: float


def say_what_starts(text: Text, known: int) -> None:
    print(f"Counting the words of {text.path}: {text.files:,} {_plural('file', text.files)}")
    if known:
        print(f"{known:,} words are counted already; only files that are new will be read.")
    print("Starting Spark ...", flush=True)


def follow(run: Run) -> Followed:
    """Show how far the run is until it ends; raise what it failed with."""
    started = time.monotonic()
    batches: set[int] = set()
    while not run.awaitTermination(0.02):
        _show_progress(run, batches)
    _show_progress(run, batches)
    if sys.stdout.isatty():
        print()
    return Followed(max(batches) - min(batches) + 1 if batches else 0, time.monotonic() - started)


def _show_progress(run: Run, batches: set[int]) -> None:
    progress = run.lastProgress
    if progress is None or progress.txid in batches:
        return
    batches.add(progress.txid)
    seconds = sum(progress.seconds.values())
    line = (
        f"batch {progress.txid}: {progress.tuples:,} lines, "
        f"{progress.keys_written:,} different words, {seconds:.2f} s"
    )
    if sys.stdout.isatty():
        print(f"\r{line:<78}", end="", flush=True)
    else:
        print(line, flush=True)


def show_top(counts: Mapping[str, int], number: int = 10) -> None:
    top = heapq.nsmallest(number, counts.items(), key=lambda pair: (-pair[1], pair[0]))
    print(f"\nThe words that occur most, of {len(counts):,}:")
    for word, count in top:
        print(f"  {count:>9,}  {word}")


def summarise(topology: TridentTopology, run: Followed, new: int, database: Path) -> None:
    """One line: what this run did, where the state is, and what it guarantees and why."""
    plan = topology.plan()
    (update,) = (update for group in plan.groups for update in group.updates)
    promise = guarantee(plan, update)
    print(
        f"\n{run.batches} {_plural('batch', run.batches)}, {new:,} new words, "
        f"{new / run.seconds:,.0f} words/s; state in SQLite ({_short(database)}), "
        f"{promise.level}: {promise.why}"
    )


def say_how_to_go_on(text: Text, folder: Path) -> None:
    print("\nGo on:")
    if text.path.is_dir():
        print(f"  put more files into {text.path}")
        print("  and run this again: it reads those only, and counts nothing twice")
    else:
        print("  run this again: it resumes, and counts nothing twice")
    print("  make wordcount INPUT=path     counts a file or folder of yours, on its own")
    print(f"  rm -r {_short(folder)}     forgets this count")


def refuse(problem: str) -> int:
    """Say what is wrong in one paragraph; return the exit code."""
    print("\n" + textwrap.fill(problem, 100, break_long_words=False), file=sys.stderr)
    return 1


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else noun + ("es" if noun.endswith("h") else "s")


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
