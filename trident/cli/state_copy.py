"""``python -m trident state copy``: a state, with its control record, into another place."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing

from trident.cli.named import HELP, named_state
from trident.cli.shown import Ticker
from trident.states.errors import UsageError
from trident.states.maps.copying import CopyProgress, copy_state


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("source", metavar="from", help=HELP)
    parser.add_argument(
        "target",
        metavar="to",
        help="the same, as the topology will have it; a URL without prefix= takes that of the "
        "first one",
    )
    parser.add_argument("--json", action="store_true", help="print one object in the end")


def run(arguments: argparse.Namespace) -> int:
    """Copy it; may be killed and run again."""
    source = named_state(arguments.source)
    with closing(source.open()) as state:
        target = named_state(arguments.target, prefix=state.backing.prefix or None)
        if source.store == target.store:
            raise UsageError("from and to are one place:", target.shown)
        ticker = Ticker()

        def tell(progress: CopyProgress) -> None:
            what = "copying" if progress.number == 1 else "comparing"
            ticker(f"{what} {state.backing.prefix or 'the state'}", progress.entries)

        with closing(target.open()) as copy:
            try:
                copied = copy_state(state, copy, tell)
            except KeyboardInterrupt:
                print("interrupted; the same command goes on", file=sys.stderr)
                raise
            finally:
                ticker.end()
    if arguments.json:
        told = {
            "entries": copied.entries,
            "written": copied.written,
            "committed": copied.record.committed,
            "log_id": copied.record.log_id,
        }
        print(json.dumps(told))
        return 0
    print(
        f"{copied.entries:,} entries as of batch {copied.record.committed} are in {target.shown}, "
        f"compared one by one; {copied.written:,} were written"
    )
    return 0
