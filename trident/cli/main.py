"""The list of commands; a command's module is imported when it is the one that is asked for."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from trident.states.errors import TridentError, UsageError
from trident.states.printable import masked, one_line, printable

COMMANDS = {
    "backends": "list the stores: which are installed, how the others are, what each offers",
    "chaos": "kill a topology's processes, and compare what it keeps with the truth",
    "dead-letters": "count or print the tuples that a topology's steps have failed with",
    "doctor": "look at Java, Python, drivers and stores: what is missing, or set dangerously",
    "drpc": "call a function of a DRPC server",
    "explain": "print what a topology does, step by step, and what its states guarantee",
    "rebuild": "build states anew beside the old ones, and have them take their places",
    "run": "run a topology until it ends, or until a signal comes",
    "serve": "answer the queries of a topology over HTTP and Thrift",
    "state": "look into a state, copy it, remove it, or have another one take its place",
}
"""What each command does; its module is ``trident.cli.<command>``, with _ for -."""

_NOBODY_READS = 128 + 13  # what a shell shows for a program that SIGPIPE has ended

PASSING = os.EX_TEMPFAIL
"""The exit status that says that the same command may succeed later."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of an output that takes no more."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status. An error is printed as one line."""
    words = sys.argv[1:] if argv is None else list(argv)
    parser = _Parser(prog="python -m trident")
    choices = parser.add_subparsers(required=True, metavar="command", dest="command")
    for name, what in COMMANDS.items():
        choice = choices.add_parser(name, help=what, description=f"{what.capitalize()}.")
        if words[:1] == [name]:
            command = import_module(f"trident.cli.{name.replace('-', '_')}")
            command.add_arguments(choice)
            choice.set_defaults(run=command.run)
    arguments = parser.parse_args(words)
    try:
        status: int = arguments.run(arguments)
        if sys.stdout is not None:  # as it is after ``>&-``
            sys.stdout.flush()
    except TridentError as error:
        status = 2 if isinstance(error, UsageError) else PASSING if error.passing else 1
        return _tell(f"{parser.prog} {arguments.command}: {error}", status)
    except ImportError as error:
        if "pip install" not in str(error):  # one of ours says how a driver is installed
            raise
        return _tell(f"{parser.prog} {arguments.command}: {error}", 1)
    except KeyboardInterrupt:
        return _tell(f"{parser.prog} {arguments.command}: interrupted", 130)
    except BrokenPipeError:
        _write_nowhere()  # as in `… | head`
        return _NOBODY_READS
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _write_nowhere()
        where = f" ({error.filename})" if error.filename else ""
        what = f"{error.strerror}{where}. Make room for what is written, or write it elsewhere."
        return _tell(f"{parser.prog} {arguments.command}: {what}", 1)
    return status


def _write_nowhere() -> None:
    """Flush what is left of the output to nowhere, or the interpreter would complain."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Repeats what it doesn't know without the logins of URLs in it."""

    def error(self, message: str) -> NoReturn:
        super().error(one_line(masked(message)))


def _tell(text: str, status: int) -> int:
    print(printable(text), file=sys.stderr)
    return status
