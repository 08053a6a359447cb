"""A program that writes to two sinks and is killed while it does; run as ``python -m``.

Every seventh number is bad, and becomes a dead letter.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from trident import FixedBatchSpout, KafkaStateUpdater, TridentTopology
from trident.backends import kafka
from trident.batch.watchpoints import watching
from trident.states import Token

NUMBERS = 60
SEVENTH = 7


def checked(number: int) -> bool:
    if number % SEVENTH == 0:
        raise ValueError("a bad number")
    return True


def topology(servers: str, topic: str) -> TridentTopology:
    """Numbers from 0, three a batch."""
    made = TridentTopology()
    numbers = FixedBatchSpout("number long", 3, *([number] for number in range(NUMBERS)))
    good = made.newStream("numbers", numbers).filter("number", checked, on_error="dead-letter")
    good.partitionPersist(
        kafka.sink(servers, topic), "number", KafkaStateUpdater("number"), name="numbers"
    )
    return made


def main(folder: Path, servers: str, topic: str, how: str, number: float) -> None:
    """Run until killed: at a named point, the one after so many passed; or after some seconds."""
    left = int(number)

    def watch(point: str, token: Token) -> None:
        nonlocal left
        if point == how:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    if how == "clock":
        signal.setitimer(signal.ITIMER_REAL, number)  # nobody handles it: the system ends us
    letters = f"kafka://{servers}/{topic}.bad"
    started = topology(servers, topic).start(
        checkpoint=folder / "run", trigger="available", dead_letters=letters
    )
    with watching(watch), started as run:
        run.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5], float(sys.argv[5]))
