"""``python -m trident dead-letters``: what a topology has failed with, tuple by tuple."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.cli.named import find_state
from trident.operations.letter_folder import LetterFolder, prefixes_in
from trident.plan.dead_letters import PREFIX
from trident.spouts.dead_letters import KeptLetter, read_letters
from trident.states.errors import UsageError
from trident.states.maps.factory import MapStateFactory
from trident.states.printable import one_line

_PARTS = {
    "list": "count them by step and error",
    "show": "print each, with its tuple",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices = parser.add_subparsers(required=True, metavar="what", dest="what")
    for name, what in _PARTS.items():
        part = choices.add_parser(name, help=what, description=f"{what.capitalize()}.")
        part.add_argument(
            "url",
            help="what start(dead_letters=…) was given, the URL of a map or a folder; with prefix= "
            "those of one group, by default dead_letters. and its id",
        )
        part.add_argument("--step", default="", help="only of steps whose text has this in it")
        part.add_argument("--batch", type=int, help="only of this batch")
        part.add_argument("--json", action="store_true", help="an object on a line for each")


def run(arguments: argparse.Namespace) -> int:
    for prefix, opened in _states(arguments.url):
        with closing(opened) as state:
            state.control.expect()
            found = [each for each in read_letters(state) if _is_asked(arguments, each)]
        for line in _lines(arguments, prefix, found):
            print(line)
    return 0


def _states(text: str) -> Iterator[tuple[str, Any]]:
    """The states of dead letters at a URL: that of its prefix, or those of all groups."""
    url = StateURL.parse(text)
    folder = LetterFolder.of(url)
    names = [url.options["prefix"]] if "prefix" in url.options else _names(url, folder)
    for name in names:
        yield name, folder.named(name).makeState() if folder else find_state(text, name).open()


def _names(url: StateURL, folder: LetterFolder | None) -> list[str]:
    if folder is not None:
        known = prefixes_in(folder.path)
    else:
        factory = state_from_url(url)
        known = factory.store.open().prefixes() if isinstance(factory, MapStateFactory) else []
    names = [name for name in known if name.startswith(PREFIX)]
    if not names:
        advice = "Add prefix=…, where the topology was started with one."
        raise UsageError("there are no dead letters at", str(url), (), advice)
    return names


def _is_asked(arguments: argparse.Namespace, letter: KeptLetter) -> bool:
    return arguments.step in letter.step and arguments.batch in (None, letter.batch)


def _lines(
    arguments: argparse.Namespace, prefix: str, letters: Sequence[KeptLetter]
) -> Iterator[str]:
    if arguments.what == "list":
        counts = Counter([(each.step, each.error) for each in letters])
        lines: list[dict[str, Any]] = [
            {"count": count, "state": prefix, "step": step, "error": error}
            for (step, error), count in counts.most_common()
        ]
    else:
        lines = [{"state": prefix, **each._asdict()} for each in letters]
    for line in lines:
        if arguments.json:
            yield json.dumps(line)
        else:
            columns = [
                json.dumps(one) if isinstance(one, dict) else str(one) for one in line.values()
            ]
            yield "\t".join(map(one_line, columns))
