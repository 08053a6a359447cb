"""``python -m trident state``: its parts, each a module of its own."""

from __future__ import annotations

import argparse

from trident.cli import state_copy, state_drop, state_get, state_info, state_keys

_PARTS = {
    "copy": (state_copy, "copy a state, so that its topology goes on in another place"),
    "drop": (state_drop, "remove a state, after saying what would go"),
    "get": (state_get, "print committed values"),
    "info": (state_info, "tell whose a state is, as of which batch, and how it is kept"),
    "keys": (state_keys, "print the keys that have a committed value"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what each part takes."""
    choices = parser.add_subparsers(required=True, metavar="what", dest="what")
    for name, (part, what) in _PARTS.items():
        choice = choices.add_parser(name, help=what, description=f"{what.capitalize()}.")
        part.add_arguments(choice)


def run(arguments: argparse.Namespace) -> int:
    """Run the part that is asked for."""
    part, _ = _PARTS[arguments.what]
    status: int = part.run(arguments)
    return status
