"""Stores of states, one module each, and what names a state: its URL, its specification.

``hbase``, ``kafka``, ``memcached``, ``memory``, ``postgres``, ``redis`` and ``sqlite``, ``rows``,
which writes to tables of yours, and ``objectstore`` and ``zookeeper``, which keep checkpoints only,
are loaded when they are first named. Each imports its driver when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if __name__ != "trident.backends":  # the same class must not exist twice
    raise ImportError("import trident.backends, not backends: the folder is only its source")

if TYPE_CHECKING:
    from trident.backends import (
        hbase,
        kafka,
        memcached,
        memory,
        objectstore,
        postgres,
        redis,
        rows,
        sqlite,
        zookeeper,
    )
    from trident.backends.state_spec import StateSpec
    from trident.backends.urls import state_from_url

_HOMES = {"StateSpec": "state_spec", "state_from_url": "urls"}

__all__ = [
    "StateSpec",
    "hbase",
    "kafka",
    "memcached",
    "memory",
    "objectstore",
    "postgres",
    "redis",
    "rows",
    "sqlite",
    "state_from_url",
    "zookeeper",
]

if not TYPE_CHECKING:  # to which any name, also one that is mistyped, would be there then

    def __getattr__(name):
        if name in _HOMES:
            return getattr(import_module(f"trident.backends.{_HOMES[name]}"), name)
        if name in __all__:
            return import_module(f"trident.backends.{name}")
        raise AttributeError(f"module 'trident.backends' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
