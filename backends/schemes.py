"""The schemes of URLs: built-in ones, and those that other packages register as entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from trident.backends.state_url import StateURL
from trident.states.errors import StateURLError

T = TypeVar("T")

REDIS = tuple(f"redis{tls}{kind}" for kind in ("", "+cluster", "+sentinel") for tls in ("", "s"))
"""The schemes of Redis, for states and for checkpoints."""


@dataclass(frozen=True)
class BuiltIn:
    """A built-in scheme: what makes its stores, imported late, and the extra with its driver."""

    home: str
    extra: str | None = None


@dataclass(frozen=True)
class Schemes:
    """The schemes that one kind of URL may have: built-in ones, and a group of entry points."""

    kind: str
    group: str
    built_in: Mapping[str, BuiltIn]
    others: str = ""

    @property
    def names(self) -> list[str]:
        """The built-in schemes, and those that are registered now."""
        return sorted({*self.built_in, *(entry.name for entry in entry_points(group=self.group))})

    def make(self, url: StateURL, result: type[T]) -> T:
        """Return what `url` describes, a `result`; ValueErrors become StateURLErrors."""
        built_in = self.built_in.get(url.scheme)
        entry = (
            EntryPoint(url.scheme, built_in.home, self.group)
            if built_in
            else self._find_registered(url.scheme)
        )
        make = _load(entry)
        try:
            made = make(url)
        except StateURLError:
            raise
        except ValueError as error:
            raise StateURLError(f"{url}: {error}") from error
        if not isinstance(made, result):
            what = f"{url.scheme}: {_name_of(entry)} returned no {result.__name__} but"
            raise StateURLError(what, type(made).__name__)
        return made

    def _find_registered(self, scheme: str) -> EntryPoint:
        """Return what another package registered; every call searches the installed packages."""
        registered = entry_points(group=self.group)
        found = [entry for entry in registered if entry.name == scheme]
        if not found:
            raise self._unknown_scheme(scheme)
        if len(found) > 1:
            names = " and ".join(sorted(map(_name_of, found)))
            advice = "Uninstall all of them but one."
            raise StateURLError(f"{scheme}: several packages register it: {names}", "", (), advice)
        return found[0]

    def _unknown_scheme(self, scheme: str) -> StateURLError:
        what, known = f"no scheme of a {self.kind}'s URL is", self.names
        nearest = self.built_in.get(StateURLError(what, scheme, known).nearest or "")
        extra = (nearest and nearest.extra) or "redis"
        advice = (
            "The driver of a store comes with its extra, as in pip install "
            f'"trident-spark[{extra}]", any other scheme with the package that registers it.'
            + self.others
        )
        return StateURLError(what, scheme, known, advice)


def _load(entry: EntryPoint) -> Callable[[StateURL], object]:
    try:
        make: Callable[[StateURL], object] = entry.load()
    except Exception as error:
        what = f"{entry.name}: {_name_of(entry)} can't be loaded: {type(error).__name__}: {error}"
        raise StateURLError(what, "", (), "Repair or uninstall that package.") from error
    return make


def _name_of(entry: EntryPoint) -> str:
    package = f" of the package {entry.dist.name}" if entry.dist else ""
    return f"{entry.value}{package}"
