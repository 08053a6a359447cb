"""Backing maps, one module a store; each imports its driver when it is first used.

``hbase``, ``kafka``, ``memcached``, ``postgres``, ``redis``, ``sqlite`` and ``zookeeper``, which
keeps checkpoints only, are loaded when they are first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if __name__ != "trident.backends":  # the same class must not exist twice
    raise ImportError("import trident.backends, not backends: the folder is only its source")

if TYPE_CHECKING:
    from trident.backends import hbase, kafka, memcached, postgres, redis, sqlite, zookeeper

__all__ = ["hbase", "kafka", "memcached", "postgres", "redis", "sqlite", "zookeeper"]

if not TYPE_CHECKING:  # to which any name, also one that is mistyped, would be there then

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'trident.backends' has no attribute {name!r}")
        return import_module(f"trident.backends.{name}")


def __dir__() -> list[str]:
    return __all__
