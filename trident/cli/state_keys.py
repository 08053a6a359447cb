"""``python -m trident state keys``: list what has a committed value."""

from __future__ import annotations

import argparse
from contextlib import closing

from trident.cli.named import HELP, named_state
from trident.cli.shown import json_text, key_text
from trident.states.keys import decode_key


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("state", help=f"{HELP}. Memcached lists no keys")
    parser.add_argument("--values", action="store_true", help="with their values")
    parser.add_argument("--json", action="store_true", help="an object on a line for each key")


def run(arguments: argparse.Namespace) -> int:
    """Print the keys, some at a time; where batches go on meanwhile each is of its own moment."""
    with closing(named_state(arguments.state).open()) as state:
        state.control.expect()
        for page in state.tables.reading.pages():
            keys = [decode_key(key) for key in dict(page)]
            for key, value in zip(keys, state.multiGet(keys), strict=True):
                if value is None:
                    continue
                if arguments.json:
                    shown = f',"value":{json_text(value)}' if arguments.values else ""
                    print(f'{{"key":{json_text(list(key))}{shown}}}')
                else:
                    shown = f"\t{json_text(value)}" if arguments.values else ""
                    print(f"{key_text(key)}{shown}")
    return 0
