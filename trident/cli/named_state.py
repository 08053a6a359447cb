"""What a command names as a state: a store's URL with its prefix, or a state of a topology."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trident.backends.state_url import StateURL
from trident.backends.urls import schemes, state_from_url
from trident.cli.named import named_topology
from trident.plan.guarantee import Guarantee, guarantee
from trident.plan.plan import Plan
from trident.states.errors import StateURLError, UsageError
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.stored_map import StoredMap
from trident.states.state import StateFactory

HELP = (
    "a store's URL, as persistentAggregate takes it, with the prefix= under which the topology "
    "keeps the state; or module:topology/state, which is looked for from the current folder"
)
"""What the help of a command says of the argument."""


@dataclass(frozen=True)
class NamedState:
    """A state, not opened yet.

    `shown` is how it was named, without passwords.
    """

    shown: str
    factory: StateFactory
    guarantee: Guarantee | None = None

    def open(self) -> StoredMap:
        """Return the state, for reading.

        Raises UsageError for a state that only the process of its run can see, and for one that is
        no map of this library.
        """
        kind = self.factory.map_type
        if kind is not None and not kind.lasts:
            what = f"{self.shown} is in the memory of the process that runs the topology"
            advice = "Keep it in a store, such as 'sqlite:counts.db', or ask that process."
            raise UsageError(what, "", (), advice)
        state = self.factory.makeState({}, None, 0, 1)
        if not isinstance(state, StoredMap):
            what = f"{self.shown} is no map over a store, but a"
            raise UsageError(what, type(state).__name__)
        state.control.name = state.backing.prefix or state.control.name  # as errors call it
        return state

    @property
    def store(self) -> object:
        """The configuration of the store, or of a database of rows; None where there is none."""
        return getattr(self.factory, "store", None) or getattr(self.factory, "database", None)


def is_url(text: str) -> bool:
    """Return whether a word is a URL of a state, rather than ``module:topology``.

    Examples
    --------
    >>> is_url("sqlite:counts.db"), is_url("ridis://cache"), is_url("words:topology/count")
    (True, True, False)
    """
    return "://" in text or text.partition(":")[0].lower() in schemes()


def named_state(text: str, prefix: str | None = None) -> NamedState:
    """The state that a word names.

    The word is a URL, or ``module:topology/state``. A URL without a prefix is taken to say
    `prefix`; None refuses it.
    """
    if is_url(text):
        return _of_url(StateURL.parse(text), prefix)
    topology, _, name = text.partition("/")
    if not name:
        advice = "Write a store's URL, or module:topology/state, as in words:topology/count."
        raise UsageError("no state is named by", text, (), advice)
    return state_of(named_topology(topology).plan(), name, topology)


def state_of(plan: Plan, name: str, topology: str) -> NamedState:
    """The state of a topology by its name; `topology` is how errors call that."""
    for node in plan.states:
        if node.state.name == name:
            update = plan.update_of(node.state)
            found = guarantee(plan, update) if update else None
            return NamedState(f"{topology}/{name}", node.state.factory, found)
    names = [node.state.name for node in plan.states]
    raise UsageError(f"{topology} has no state", name, names)


def _of_url(url: StateURL, prefix: str | None) -> NamedState:
    factory: StateFactory = state_from_url(url)
    if "prefix" not in url.options and not prefix:
        others = factory.store.open().prefixes() if isinstance(factory, MapStateFactory) else []
        what = f"{url}: the URL names no state, as it has no prefix="
        advice = "Add prefix=…, by default the state's name."
        if others:
            advice += f" There are: {', '.join(map(repr, others))}."
        raise StateURLError(what, "", (), advice)
    if "prefix" in url.options:
        return NamedState(str(url), factory)
    given = replace(url, options={**url.options, "prefix": prefix or ""})
    return NamedState(str(given), state_from_url(given))
