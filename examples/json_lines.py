"""Parse JSON lines: those that a function fails with are kept, mended, and put back as a stream.

    python examples/json_lines.py

The first run meets a line that is cut off, and one whose amount is a text. Both become dead letters
in a folder, as part of their batches, and the other lines count. ``python -m trident dead-letters``
lists them; here it is called as a function. The second run has a mended function, and a stream of
the letters beside the lines: each is counted once, however often that is started.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from trident import DeadLetterSpout, FixedBatchSpout, MapGet, Split, Sum, TridentTopology
from trident.cli.main import main as command

LINES = [
    '{"user": "ann", "amount": 5}',
    '{"user": "bob", "amount": 7',
    '{"user": "ann", "amount": "3"}',
    '{"user": "eve", "amount": 2}',
]

Parse = Callable[[str], tuple[str, int]]


def parsed(line: str) -> tuple[str, int]:
    order = json.loads(line)
    return order["user"], order["amount"]


def mended(line: str) -> tuple[str, int]:
    order = json.loads(line if line.endswith("}") else line + "}")
    return order["user"], int(order["amount"])


def orders(parse: Parse, sums: str, letters: str | None = None) -> TridentTopology:
    """Describe the sums of the users' amounts, of lines and, where they are given, of letters."""
    topology = TridentTopology()
    lines = topology.newStream("lines", FixedBatchSpout("line string", 2, *([n] for n in LINES)))
    if letters is not None:
        again = topology.newStream("lines again", DeadLetterSpout(letters, "line string"))
        lines = topology.merge(lines, again)
    amounts = (
        lines.map(parse, "user string, amount long", on_error="dead-letter")
        .groupBy("user")
        .persistentAggregate(sums, "amount", Sum(), "sum")
    )
    asked = topology.newDRPCStream("sums").each("args", Split(), "user").groupBy("user")
    asked.stateQuery(amounts, "user", MapGet(), "sum").project("user, sum")
    return topology


def count(topology: TridentTopology, folder: Path, letters: str) -> None:
    with topology.start(checkpoint=folder / "log", dead_letters=letters) as run:
        run.processAllAvailable()
        print(run.drpc.execute("sums", "ann bob eve"))


def main() -> None:
    logging.getLogger("trident").setLevel(logging.ERROR)  # it warns of what is left out
    with TemporaryDirectory() as name:
        folder, sums = Path(name), f"sqlite:{name}/sums.db"
        letters = f"file:{name}/letters"
        count(orders(parsed, sums), folder, letters)
        command(["dead-letters", "list", letters])
        for _ in range(2):
            again = f"{letters}?prefix=dead_letters.lines"
            count(orders(mended, sums, again), folder, letters)


if __name__ == "__main__":
    main()
