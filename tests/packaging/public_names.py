"""The public names: of the packages, of the stores, and the calls of what declares and runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import trident.backends
from trident import GroupedStream, Run, Stream, TridentState, TridentTopology
from trident.api.stream import ChainedAggregatorDeclarer, WindowedStream

PACKAGES = (
    *("trident.backends", "trident.errors", "trident.server", "trident.spark", "trident.states"),
    *("trident.storm", "trident.testing", "trident.transactional"),
    *("trident.batch.events", "trident.drpc.errors", "trident.state_service.errors"),
    *("trident.spouts.kafka", "trident.figures.opentelemetry", "trident.pytest_plugin"),
)
"""The public packages and modules beside `trident` and the stores."""
STORES = [name for name in trident.backends.__all__ if name.islower() and "_" not in name]
OWNERS = (
    TridentTopology,
    Stream,
    WindowedStream,
    GroupedStream,
    ChainedAggregatorDeclarer,
    TridentState,
    Run,
)
"""The classes whose calls are public names too: each is on a page by its own."""


def public(module: ModuleType) -> list[str]:
    """The names of a module: those it lists, else those that it makes itself."""
    own = (
        name
        for name, found in vars(module).items()
        if not name.startswith("_") and getattr(found, "__module__", None) == module.__name__
    )
    return sorted(getattr(module, "__all__", own))


def calls(owner: type) -> list[str]:
    """The public calls and documented properties of a class, without those of another owner."""
    inherited = {name for base in owner.__bases__ if base in OWNERS for name in dir(base)}
    return [
        name
        for name, found in inspect.getmembers(owner)
        if not name.startswith("_")
        and name not in inherited
        and (callable(found) or (isinstance(found, property) and found.__doc__))
    ]


def public_names() -> Iterator[tuple[str, Any]]:
    """Each public name with its package or class, and what it names."""
    for package in ("trident", *PACKAGES, *(f"trident.backends.{name}" for name in STORES)):
        module = import_module(package)
        for name in public(module):
            if name not in STORES:
                yield f"{package}.{name}", getattr(module, name)
    for owner in OWNERS:
        home = "trident" if owner.__name__ in trident.__all__ else owner.__module__
        for call in calls(owner):
            yield f"{home}.{owner.__name__}.{call}", getattr(owner, call)
