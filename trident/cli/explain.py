"""``python -m trident explain``: what a topology does, and what its states guarantee."""

from __future__ import annotations

import argparse
import json

from trident.cli.named import load_topology
from trident.states.printable import printable

_FORMS = {
    "json": ("to_dict", "as JSON"),
    "mermaid": ("to_mermaid", "as a flowchart in Mermaid's language"),
    "svg": ("to_svg", "as a drawing"),
}
"""The forms other than text: the topology's method, and what it gives."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "topology",
        metavar="module:topology",
        help="a topology, or a function that returns one; nothing is started or connected to",
    )
    forms = parser.add_mutually_exclusive_group()
    for name, (method, what) in _FORMS.items():
        forms.add_argument(f"--{name}", action="store_const", dest="form", const=method, help=what)


def run(arguments: argparse.Namespace) -> int:
    topology = load_topology(arguments.topology)
    found = getattr(topology, arguments.form or "explain")()
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=2)
    print(printable(text.rstrip("\n")))
    return 0
