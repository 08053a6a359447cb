"""What `wordcount.py` prints."""

from __future__ import annotations

import heapq
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from wordcount_text import Text

from trident.api.run import Run
from trident.api.topology import TridentTopology
from trident.batch.events import Event, GroupStarted
from trident.batch.progress import BatchProgress
from trident.plan.guarantee import guarantee


def say_what_starts(text: Text, known: int) -> None:
    print(f"Counting the words of {text.path}: {_counted(text.files, 'file')}")
    if known:
        print(f"{known:,} words are counted already; only files that are new will be read.")
    sys.stdout.flush()


def follow(run: Run) -> float:
    """Show how far the run is until it ends, and return the seconds it took; raise its failure."""
    run.listen(_say_recovery).stop()
    started = time.monotonic()
    shown, ended = 0, False
    while not ended:
        ended = run.awaitTermination(0.1)
        progress = run.lastProgress
        seconds = time.monotonic() - started
        if sys.stdout.isatty():
            print(f"\r{_line(progress, seconds):<78}", end="\n" if ended else "", flush=True)
        elif progress is not None and progress.txid != shown:
            print(_line(progress, seconds), flush=True)
            shown = progress.txid
    return seconds


def _say_recovery(event: Event) -> None:
    """Say after which batch an earlier run ended, and what it left."""
    if isinstance(event, GroupStarted) and event.recovered:
        print(event.text, flush=True)


def _line(progress: BatchProgress | None, seconds: float) -> str:
    if progress is None:
        return f"looking for new files, {seconds:.0f} s"
    return f"batch {progress.txid}: {progress.keys_written:,} different words, {seconds:.0f} s"


def most_frequent(counts: Mapping[str, int], number: int) -> list[str]:
    return heapq.nsmallest(number, counts, key=lambda word: (-counts[word], word))


def show_top(counts: Mapping[str, int]) -> None:
    print(f"\nThe words that occur most, of {len(counts):,}:")
    for word in most_frequent(counts, 10):
        print(f"  {counts[word]:>9,}  {word}")


def show_answer(question: str, answer: str) -> None:
    """What a query of the running topology was answered: the sum of the counts of some words."""
    print(f'\nwords("{question}") = {answer}')


def summarise(
    topology: TridentTopology,
    batches: Sequence[BatchProgress],
    new: int,
    seconds: float,
    database: Path,
) -> None:
    """One line: what a run did, where the state is, and what it guarantees and why."""
    plan = topology.plan()
    (update,) = (update for group in plan.groups for update in group.updates)
    promise = guarantee(plan, update)
    parts = (
        _counted(len(batches), "batch"),
        _counted(sum(batch.tuples for batch in batches), "line"),
        f"{new:,} new words",
        f"{new / seconds:,.0f} words/s",
    )
    state = f"state in SQLite ({_short(database)})"
    print(f"\n{', '.join(parts)}; {state}, {promise.level}: {promise.why}")


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
    wrapper = textwrap.TextWrapper(100, break_long_words=False, break_on_hyphens=False)
    lines = map(wrapper.fill, problem.splitlines())
    print("\n" + "\n".join(lines), file=sys.stderr)
    return 1


def _counted(number: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("h") else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
