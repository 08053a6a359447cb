"""``python -m trident backends``: what is installed, what is not, and what each offers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from trident.backends import checkpoints, urls
from trident.backends.schemes import BuiltIn
from trident.cli.installed import extras

_FURTHER = {
    "spark": ["streams of DataFrames", "batches on executors"],
    "connect": ["sessions of Spark Connect"],
    "kafka": ["a source", "topics as states"],
    "drpc": ["servers and clients of queries"],
    "opentelemetry": ["spans of batches and queries"],
}
"""What the extras offer that bring no store."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("--json", action="store_true", help="an object on a line for each")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each; nothing is connected to."""
    rows = [*_built_in(), *_registered()]
    if arguments.json:
        for row in rows:
            print(json.dumps(row))
        return 0
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        how = row["installed"] or f"missing: {row['pip']}"
        schemes = f" ({', '.join(row['schemes'])})" if row["schemes"] else ""
        print(f"{row['name']:{width}}  {', '.join(row['offers'])}{schemes}; {how}")
    return 0


def _built_in() -> Iterator[Mapping[str, Any]]:
    for name in ("memory", "sqlite"):
        yield _row(name, ["states"], [name], "always there")
    for extra in extras():
        states, logs = (_of(extra.name, each) for each in (urls.BUILT_IN, checkpoints.BUILT_IN))
        offers = [*(["states"] if states else []), *(["checkpoints"] if logs else [])]
        offers += _FURTHER.get(extra.name, [])
        installed = str(extra) if extra.installed else ""
        yield _row(extra.name, offers, sorted({*states, *logs}), installed, extra.pip)


def _of(extra: str, schemes: Mapping[str, BuiltIn]) -> list[str]:
    return [scheme for scheme, home in schemes.items() if home.extra == extra]


def _registered() -> Iterator[Mapping[str, Any]]:
    """What other packages have added."""
    for group, offers in ((urls.GROUP, "states"), (checkpoints.GROUP, "checkpoints")):
        for entry in entry_points(group=group):
            package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
            yield _row(entry.name, [offers], [entry.name], package)


def _row(
    name: str, offers: list[str], schemes: list[str], installed: str, pip: str | None = None
) -> Mapping[str, Any]:
    return {
        "name": name,
        "offers": offers,
        "schemes": schemes,
        "installed": installed or None,
        "pip": pip,
    }
