"""``python -m trident state get``: look keys up, as of the last committed batch."""

from __future__ import annotations

import argparse
from contextlib import closing

from trident.cli.named import HELP, named_state
from trident.cli.shown import json_text, key_of, key_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("state", help=HELP)
    parser.add_argument(
        "keys",
        nargs="*",
        metavar="key",
        help="a key of one text, or a JSON array of its fields, as '[\"dog\", 2]'; without any the "
        "single value of an aggregate without groups",
    )
    parser.add_argument("--json", action="store_true", help="an object on a line for each key")


def run(arguments: argparse.Namespace) -> int:
    """Print the value of each key as JSON, null where it has none; then the status is 1."""
    asked = [key_of(word) for word in arguments.keys]
    with closing(named_state(arguments.state).open()) as state:
        keys = asked or [state.key]
        values = state.multiGet(keys)
    for key, value in zip(keys, values, strict=True):
        if arguments.json:
            print(f'{{"key":{json_text(list(key))},"value":{json_text(value)}}}')
        else:
            print(json_text(value) if len(keys) == 1 else f"{key_text(key)}\t{json_text(value)}")
    return 1 if None in values else 0
