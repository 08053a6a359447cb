"""What a command names: a topology as ``module:name``, and a state by a URL or a topology."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from trident.api.topology import TridentTopology
from trident.backends.state_url import StateURL
from trident.backends.urls import STATES, state_from_url
from trident.plan.guarantee import Guarantee, guarantee
from trident.plan.plan import Plan
from trident.states.errors import StateURLError, TridentError, UsageError
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.stored_map import StoredMap
from trident.states.printable import masked
from trident.states.state import StateFactory

HELP = (
    "a store's URL, as persistentAggregate takes it, with the prefix= under which the topology "
    "keeps the state; or module:topology/state, which is looked for from the current folder"
)
"""What the help of a command says of the argument."""


def load_name(name: str) -> Any:
    """Return what a module has under a name."""
    module, _, attribute = name.partition(":")
    if not (module and attribute) or module.startswith("."):
        advice = "As in words:topology."
        raise UsageError("the topology is written module:name, found", name, advice=advice)
    if "" not in sys.path:
        sys.path.insert(0, "")
    what = f"{name} can't be imported"
    looked = "It is looked for from the current folder."
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _error_for(what, error) from error  # something that the module itself imports
        raise UsageError(f"{what}: {error}", advice=looked) from error
    except TridentError:
        raise
    except Exception as error:
        raise _error_for(what, error) from error
    try:
        return getattr(found, attribute)
    except AttributeError as error:
        raise UsageError(f"{what}: {error}", advice=looked) from error


def load_topology(name: str) -> TridentTopology:
    """Return the topology that a module has under a name, or that a function there returns."""
    found = load_name(name)
    is_made = isinstance(found, TridentTopology) or not callable(found)
    made = found if is_made else _call(name, found)
    if not isinstance(made, TridentTopology):
        what = f"{name} is no TridentTopology, nor a function that returns one, but a"
        raise UsageError(what, type(made).__name__)
    return made


def _call(name: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except TridentError:
        raise
    except Exception as error:
        raise _error_for(f"{name} returns no topology", error) from error


def _error_for(what: str, raised: Exception) -> UsageError:
    """Return the error for what a module, or a function in it, has raised, and its place."""
    error = raised
    if type(raised).__module__.startswith("pyspark."):
        from trident.spark.java import explain_start_failure

        error = explain_start_failure(raised) or raised
    text = masked(" ".join(f"{type(error).__name__}: {error}".split())).rstrip(".")
    passed = {__file__, importlib.__file__}
    own = [
        f"{frame.filename}, line {frame.lineno}"
        for frame in traceback.extract_tb(raised.__traceback__)
        if frame.filename not in passed and not frame.filename.startswith("<")
    ]
    return UsageError(f"{what}: {text}", advice=f"It was raised in {own[-1]}." if own else "")


@dataclass(frozen=True)
class NamedState:
    """A state, not opened yet.

    `shown` is how it was named, without passwords.
    """

    shown: str
    factory: StateFactory
    guarantee: Guarantee | None = None
    plan: Plan | None = None

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
    def map_factory(self) -> MapStateFactory:
        """Its factory, which can make states of other prefixes; raises UsageError if it can't."""
        if not isinstance(self.factory, MapStateFactory):
            raise UsageError(f"{self.shown} is no map over a store, but of", self.factory.label)
        return self.factory

    @property
    def store(self) -> object:
        """The configuration of the store, or of a database of rows; None if it has none."""
        return getattr(self.factory, "store", None) or getattr(self.factory, "database", None)


def is_url(text: str) -> bool:
    """Return whether a word is a URL of a state, rather than ``module:topology``."""
    return "://" in text or text.partition(":")[0].lower() in STATES.names


def check_prefix(text: str) -> None:
    """Raise where the URL of a store is given as the prefix of a state that is to take a place."""
    if ":" in text and is_url(text):
        advice = (
            "Readers find it by the record of the old state, which has no address of another "
            "store, nor its password. Copy the state to that store first, by state copy, "
            "and give the topology and its readers the URL."
        )
        what = "a state takes a place in the store of the old one, by its prefix; found the URL"
        raise UsageError(what, text, (), advice)


def find_state(text: str, prefix: str | None = None) -> NamedState:
    """Return the state that a word names.

    The word is a URL, or ``module:topology/state``. A URL without a prefix is taken to say
    `prefix`; None refuses it.
    """
    if is_url(text):
        return _of_url(StateURL.parse(text), prefix)
    topology, _, name = text.partition("/")
    if not name:
        advice = "Write a store's URL, or module:topology/state, as in words:topology/count."
        raise UsageError("no state is named by", text, (), advice)
    return state_of(load_topology(topology).plan(), name, topology)


def state_of(plan: Plan, name: str, topology: str) -> NamedState:
    """Return the state of a topology by its name; errors call the topology `topology`."""
    for node in plan.states:
        if node.state.name == name:
            update = plan.update_of(node.state)
            found = guarantee(plan, update) if update else None
            return NamedState(f"{topology}/{name}", node.state.factory, found, plan)
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
