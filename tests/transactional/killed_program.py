"""One of the classic programs, killed at a point: ``program folder redis point txid [spark]``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from trident.testing import kill_at


def topology(program: str, folder: str, redis: str) -> Any:
    """The topology of an example, on a database of its own."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    example: Any = import_module(EXAMPLES[program])
    if program == "count":
        return example.counting(f"{folder}/total.db")
    return example.counting(redis, f"{Path(folder).name}:", TEXT)


EXAMPLES = {"count": "transactional_global_count", "words": "transactional_words"}
TEXT = "the man walked to the dog and the dog walked to the man and the cat sat on the mat " * 3


def main(program: str, folder: str, redis: str, point: str, txid: str) -> None:
    with (
        kill_at(point, int(txid)) if point else nullcontext(),
        topology(program, folder, redis).start(
            checkpoint=f"{folder}/log", trigger="available"
        ) as run,
    ):
        run.awaitTermination(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
