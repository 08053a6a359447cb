"""Which optional packages are installed: what this package's own metadata asks for, by extra."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from trident.states.errors import UsageError

PACKAGE = "trident-spark"
_OPTIONAL = re.compile(r"""([\w.-]+)[^;]*;\s*extra\s*==\s*["']([\w.-]+)["']""")


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
    """Return the extras, each with what is installed of it."""
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
