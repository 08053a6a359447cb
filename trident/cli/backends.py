"""``python -m trident backends``: what is installed, what is not, and what each offers."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from typing import Any

from trident.backends.checkpoints import CHECKPOINTS
from trident.backends.rows.urls import DATABASES
from trident.backends.schemes import Schemes
from trident.backends.urls import STATES
from trident.states.errors import UsageError

PACKAGE = "trident-spark"
_OPTIONAL = re.compile(r"""([\w.-]+)[^;]*;\s*extra\s*==\s*["']([\w.-]+)["']""")
_FURTHER = {
    "spark": ["streams of DataFrames", "batches on executors"],
    "connect": ["sessions of Spark Connect"],
    "kafka": ["a source", "topics as states"],
    "drpc": ["servers and clients of queries"],
    "opentelemetry": ["spans of batches and queries"],
}
"""What the extras offer that bring no store."""
_KINDS = {"states": STATES, "checkpoints": CHECKPOINTS, "tables of rows": DATABASES}


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
        found = {what: _of(extra.name, schemes) for what, schemes in _KINDS.items()}
        offers = [what for what in found if found[what]] + _FURTHER.get(extra.name, [])
        installed = str(extra) if extra.installed else ""
        names = sorted({scheme for each in found.values() for scheme in each})
        yield _row(extra.name, offers, names, installed, extra.pip)


def _of(extra: str, schemes: Schemes) -> list[str]:
    built_in = schemes.built_in.items()
    return [scheme for scheme, home in built_in if extra in str(home.extra).split(",")]


def _registered() -> Iterator[Mapping[str, Any]]:
    """What other packages have added."""
    for offers, schemes in _KINDS.items():
        for entry in entry_points(group=schemes.group):
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


@dataclass(frozen=True)
class Extra:
    """An extra of this package.

    `versions` are of the packages that it brings, None for one that is missing.
    """

    name: str
    versions: Mapping[str, str | None]

    @property
    def installed(self) -> bool:
        """Whether all of them are there."""
        return None not in self.versions.values()

    @property
    def pip(self) -> str:
        """The command that installs them."""
        return f'pip install "{PACKAGE}[{self.name}]"'

    def __str__(self) -> str:
        found = [f"{name} {number}" for name, number in self.versions.items() if number]
        return ", ".join(found)


def extras() -> list[Extra]:
    found: dict[str, dict[str, str | None]] = {}
    try:
        wanted = requires(PACKAGE) or []
    except PackageNotFoundError:
        what = f"{PACKAGE} is not installed as a package, so what it can use isn't known"
        raise UsageError(what, "", (), "In a checkout: pip install -e .") from None
    for each in wanted:
        matched = _OPTIONAL.fullmatch(each)
        if matched is not None and matched[1] != PACKAGE:
            found.setdefault(matched[2], {})[matched[1]] = _version(matched[1])
    return [Extra(name, versions) for name, versions in found.items()]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
