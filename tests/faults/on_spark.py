"""Counts words on Spark in a Redis, where tasks die while they write; run as ``python -m``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.faults.mortal import Mortal
from tests.faults.word_count import WordCount, at
from tests.spark.files import wait_for
from trident.backends import redis
from trident.spark import local_session
from trident.states import OpaqueMap


def main(folder: Path, port: int) -> None:
    """Count, with a task that dies in batch 2 and one in batch 3; leave what came of it in a file.

    The copy of the one writes together with the task that runs in its place, the copy of the
    other when batch 4 has begun.
    """
    store = redis.opaque("127.0.0.1", port, prefix="count").store
    factory = OpaqueMap.factory(Mortal(store, str(folder)), name="count")
    # Spark tries a task four times.
    with local_session(**{"spark.master": "local[2,4]"}) as spark:
        words = WordCount(factory, folder, batches=5, spark=spark)
        together, late = folder / "together", folder / "late"

        def die(place: Path, until: str) -> None:
            place.mkdir()
            (place / "die.part").write_text(until)
            (place / "die.part").rename(place / "die")

        def let_go_on() -> None:
            (late / "next batch").touch()
            wait_for(late / "answers")

        with (
            at("before write", 2, 0, lambda: die(together, "rerun")),
            at("before write", 3, 0, lambda: die(late, "next batch")),
            at("before write", 4, 0, let_go_on),
        ):
            retried = words.run()
        wait_for(together / "answers")
        answers = [json.loads((place / "answers").read_text()) for place in (together, late)]
        result = {"retried": retried, "exact": words.counted_all(), "answers": answers}
    (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
