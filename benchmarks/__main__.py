"""``python -m benchmarks [name …]``: measure, and print a table; the exit status is always 0.

``python -m benchmarks sizes [long] [word …]`` is another one, which writes docs/performance.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.report import HEADING, Figure, line
from benchmarks.sizes import command as sizes

NAMES = (
    *("sqlite", "keys", "local", "batches", "pending", "engines", "commits", "drpc", "serve"),
    *("windows", "operations", "columns", "look_ups", "rebuild", "states_frame"),
    *("kafka", "spark", "stores", "spark_redis", "spark_postgres", "rows", "connect", "yahoo"),
)


def main(names: list[str]) -> None:
    """Run the benchmarks called `names`, all by default."""
    unknown = set(names) - set(NAMES)
    if unknown:
        sys.exit(
            f"no benchmark is called {', '.join(sorted(unknown))}; there are: {' '.join(NAMES)}"
        )
    print(HEADING)
    for name in names or NAMES:
        figures: Callable[[Path], Iterator[Figure]] = import_module(f"benchmarks.{name}").figures
        with TemporaryDirectory(prefix="trident-bench-") as folder:
            for figure in figures(Path(folder)):
                print(line(figure), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["sizes"]:
        sizes.main(sys.argv[2:])
    else:
        main(sys.argv[1:])
