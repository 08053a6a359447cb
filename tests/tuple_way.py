"""Which files of the library a tuple passes in a batch, and how many calls a batch takes.

``python -m tests.tuple_way`` prints both, of a word count in this process: run it before and after
a change of what each batch passes.
"""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import trident
from trident import Count, FixedBatchSpout, MemoryMapState, Split, TridentTopology

_ROOT = Path(trident.__file__).parent
_WORDS = "the cow jumped over the moon " * 16 + "and so on now"
"""A hundred words."""


class Way:
    """Counts calls, by the file of the library that they are of."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.others = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            path = Path(frame.f_code.co_filename)
            name = str(path).removeprefix(f"{_ROOT}/")
            self.files[name if name != str(path) else ""] += 1
        elif event == "c_call":
            self.others += 1


def counted(batches: int, sentence: str = _WORDS) -> Way:
    """What a run of so many batches, each of one sentence, calls."""
    topology = TridentTopology()
    spout = FixedBatchSpout("sentence string", 1, *[(sentence,)] * batches)
    words = topology.newStream("s", spout).each("sentence", Split(), "word").groupBy("word")
    words.persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    way = Way()
    threading.setprofile(way)
    try:
        with topology.start(trigger="available") as run:
            assert run.awaitTermination(60)
    finally:
        threading.setprofile(None)
    return way


def a_batch(sentence: str = _WORDS) -> tuple[Counter[str], float]:
    """The calls of one batch by file, and how many calls of C functions it makes."""
    few, many = counted(20, sentence), counted(120, sentence)
    files: Counter[str] = Counter()
    for name, calls in many.files.items():
        if calls - few.files[name] >= 50:  # else it isn't called in each batch
            files[name] = round((calls - few.files[name]) / 100)
    return files, (many.others - few.others) / 100


def main() -> None:
    """Print the files by how often they are called."""
    files, others = a_batch()
    for name, calls in files.most_common():
        print(f"{calls:6}  {name or 'outside of the library'}")
    print(f"{sum(files.values()):6}  calls a batch in {len(files)} files, {others:.0f} of C")


if __name__ == "__main__":
    main()
