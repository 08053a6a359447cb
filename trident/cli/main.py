"""The list of commands; a command's module is imported when it is the one that is asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from trident.states.errors import TridentError, UsageError

COMMANDS = {
    "chaos": "kill a topology's processes, and compare what it keeps with the truth",
    "drpc": "call a function of a DRPC server",
    "serve": "answer the queries of a topology over HTTP and Thrift",
}
"""What each command does; its module is ``trident.cli.<command>``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status. What goes wrong is told in one line.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``python -m trident``; by default those of this process.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog="python -m trident")
    choices = parser.add_subparsers(required=True, metavar="command", dest="command")
    for name, what in COMMANDS.items():
        choice = choices.add_parser(name, help=what, description=f"{what.capitalize()}.")
        if words[:1] == [name]:
            command = import_module(f"trident.cli.{name}")
            command.add_arguments(choice)
            choice.set_defaults(run=command.run)
    arguments = parser.parse_args(words)
    try:
        status: int = arguments.run(arguments)
    except TridentError as error:
        print(f"{parser.prog} {arguments.command}: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        return 130
    return status
