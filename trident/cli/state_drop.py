"""``python -m trident state drop``: a state goes, with its control record."""

from __future__ import annotations

import argparse
from contextlib import closing

from trident.cli.named import HELP, named_state
from trident.cli.state_info import count_entries, told_by_record
from trident.states.maps.dropping import check_droppable, drop_state


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("state", help=HELP)
    parser.add_argument("--yes", action="store_true", help="do it; without, only say what would go")


def run(arguments: argparse.Namespace) -> int:
    """Say what would go, or remove it; may be killed and run again."""
    named = named_state(arguments.state)
    with closing(named.open()) as state:
        check_droppable(state)
        facts = told_by_record(state)
        entries = count_entries(state)
        what = f"{entries or 0:,} entries of {named.shown}, log id {facts['log_id']}: "
        if not arguments.yes:
            print(f"would remove {what}{facts['status']}")
            print("Stop the topology that updates it. Then give the same command with --yes.")
            return 0
        drop_state(state)
    print(f"removed {what}{facts['status']}")
    return 0
