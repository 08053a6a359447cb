"""The text that is counted: 4 million words, Zipf over 100,000, the same in every run."""

from __future__ import annotations

import random
from itertools import accumulate
from pathlib import Path

WORDS = 4_000_000
KEYS = 100_000
FILES = 10
_A_LINE = 10


def zipf_words(count: int, keys: int = KEYS) -> list[str]:
    """Return words of which the n-th most frequent comes up 1/n times as often as the first."""
    rank_weights = list(accumulate(1 / rank for rank in range(1, keys + 1)))
    vocabulary = [f"word{number}" for number in range(keys)]
    random.Random(1).shuffle(vocabulary)
    return random.Random(2).choices(vocabulary, cum_weights=rank_weights, k=count)


def write_text(folder: Path, files: int = FILES) -> Path:
    """Write the text into `folder`, as `files` of equal size with ten words a line."""
    folder.mkdir(parents=True)
    chosen = zipf_words(WORDS)
    lines = [" ".join(chosen[start : start + _A_LINE]) for start in range(0, WORDS, _A_LINE)]
    for number in range(files):
        share = lines[number::files]
        (folder / f"{number}.txt").write_text("\n".join(share) + "\n")
    return folder


def write_few_words(folder: Path, files: int) -> Path:
    """Write `files` files of one short line each: almost empty batches."""
    folder.mkdir(parents=True)
    for number in range(files):
        (folder / f"{number:04}.txt").write_text("the cat sat on the dog\n")
    return folder
