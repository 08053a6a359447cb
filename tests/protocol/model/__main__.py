"""Play runs of the model: ``python -m tests.protocol.model fenced rewind 100000``."""

from __future__ import annotations

import argparse
import sys
from typing import get_args

from tests.protocol.model.rules import Ability, Harm, Rules, Setup
from tests.protocol.model.search import search, shrink


def main() -> int:
    """Play the runs that the command line asks for; 1 where one of them went wrong."""
    parser = argparse.ArgumentParser(description="Play random runs of the protocol's model.")
    parser.add_argument("ability", choices=get_args(Ability), help="what the stores can do")
    parser.add_argument("harm", choices=get_args(Harm), help="what befalls them")
    parser.add_argument("runs", type=int, help="how many runs")
    parser.add_argument("--kind", default="opaque", choices=("opaque", "transactional"))
    parser.add_argument("--staged", action="store_true", help="whether batches are staged")
    replaces = "whether a driver may replace what another has in the log of its source"
    parser.add_argument("--replaces", action="store_true", help=replaces)
    early = "whether batches read before they begin"
    parser.add_argument("--early", action="store_true", help=early)
    parser.add_argument("--expires", action="store_true", help="whether values expire")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    beside = "what the second state is, if the first is a table"
    parser.add_argument("--beside", default="", choices=("", "database", "map"), help=beside)
    together = "whether a batch is committed and merged in one transaction"
    parser.add_argument("--together", action="store_true", help=together)
    asked = parser.parse_args()
    setup = Setup(
        *(asked.ability, asked.kind, "driver" if asked.early else "executor"),
        harm=asked.harm,
        staged=asked.staged,
        early=asked.early,
        expires=asked.expires,
        replaces=asked.replaces,
        together=asked.together,
        beside=asked.beside,
    )
    found = search(setup, Rules(), asked.runs, asked.first)
    if found is None:
        print(f"{asked.runs} runs of {setup}: none went wrong")
        return 0
    print(found.what, shrink(found, Rules()).trace, sep="\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
